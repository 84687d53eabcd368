"""What every command refuses: a line that names value, place and remedy, and nothing written."""

import os
import re
from dataclasses import replace

import pytest

from cli_files import write_svmlight
from linrank import KernelModel, Store, convert, load
from linrank.cli.main import main
from linrank.data.synthetic import make_ranking
from linrank.kernels.functions import Kernel

TEXTS = {
    "bad": "1 qid:1 1:1\n0 qid:1 1:x\n",
    "flat": "1 qid:1 1:1\n1 qid:1 1:2\n",
    "plain": "1 1:1\n0 1:2\n",
    "two": "1 qid:1 1:2\n0 qid:1 1:1\n",
    "signed": "0 qid:1 1:1\n-1 qid:1 1:2\n",
    "back": "1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:2\n",
    "huge": "1 qid:1 1:1\n0 qid:1 2000000000:1\n",
    "long": "1 qid:1 1:1\n0 qid:1 " + " " * 5_000_000,
    "alone": "1 qid:1 1:1\n0 qid:2 1:2\n",
    "weighted": "1:2 qid:1 1:1\n",
    "bare": "1 qid:1\n0 qid:1\n",
    "short": "1\n2\n",
    "words": "1\ntwo\n",
    "nan": "1\nnan\n",
    "empty": "",
    "latin": "1.0\n\udcff\n",
    "names": "one\n\nthree\n",
    "qrels": "q1 0 a 2\nq2 0 a 1\n",
    "other_qrels": "nowhere 0 d0 1\n",
    "run": "q1 Q0 a 1 3.5 t\nq2 Q0 b 1 1 t\n",
    "other_run": "301 Q0 a 1 1 t\n",
    "columns": "qid,rel,f1\n1,0,2\n",
    "sidecar": "1 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:3\n0 qid:2 1:1\n",
}
TABLES = {
    "shop": "query,docid,label,a,b\nred shoes,u/1,1,0.5,1\nred shoes,u/2,0,0.25,2\n",
    "gaps": "label,qid,f\n0,1,\n1,1,2\n",
    "numbers": "GX1,0,0.0,0.0\nGX2,1,0.5,0.1\n",
    "unnamed": "stars,session,a\n1,1,2\n0,1,3\n",
    "weight": "label,qid,a,weight\n1,1,2,3\n0,1,1,1\n",
    "rank": "label,qid,a,rank\n1,1,2,3\n0,1,1,1\n",
}


@pytest.fixture(scope="module")
def place(files, tmp_path_factory):
    """Files by name: those of `files`, texts and tables that are wrong in a way, stores."""
    folder = tmp_path_factory.mktemp("refused")
    paths = {name: path for name, path in files.items() if isinstance(path, str)}
    for texts, suffix in ((TEXTS, "txt"), (TABLES, "csv")):
        for name, text in texts.items():
            paths[name] = str(folder / f"{name}.{suffix}")
            (folder / f"{name}.{suffix}").write_bytes(text.encode(errors="surrogateescape"))
    (folder / "sidecar.txt.query").write_text("2\n2\n")
    (folder / "fake.parquet").write_text(TEXTS["plain"])
    paths |= {name: str(folder / f"{name}.parquet") for name in ("fake", "table")}
    convert(paths["train"], paths["table"])
    data = make_ranking(n_queries=10, n_features=9, random_state=0)
    paths["wide"] = write_svmlight(folder / "wide.txt", replace(data, qid=data.qid + 500))
    for name in ("store", "damaged"):
        paths[name] = str(folder / name)
        Store.of(paths[name], load(paths["train"]))
    with open(folder / "damaged" / "values.bin", "r+b") as file:
        file.write(bytes(100))
    paths["kernel"], paths["folder"] = str(folder / "kernel.json"), str(folder / "folder")
    (folder / "folder").mkdir()
    (folder / "folder" / "notes").write_text("mine")
    paths["by_query"] = str(folder / "by_query.json")
    assert main(["train", paths["train"], paths["by_query"], "--scale", "query", "-q"]) == 0
    KernelModel([[0.0], [1.0]], [-1.0, 2.0], Kernel("rbf", gamma=0.5)).save(paths["kernel"])
    return paths


# The exit status, the command line, and a part of the line that says what is wrong.
REFUSED = """
2 bogus | unknown command bogus; linrank --help lists the commands
2 trian data | unknown command trian; did you mean train?
2 --hlep | unknown option --hlep; did you mean --help?
2 train data | say where to write MODEL: -o MODEL
2 train d m --jobs 0 | must be an integer ≥ 1, or -1 for all cores, got '0'
2 train d m --solver adam | must be one of newton, bundle, tron, prsvm, prsvm+, got 'adam'
2 train d m --solver sgd | got 'sgd'; did you mean --method sgd?
2 train d m --loss hing | must be one of squared_hinge, hinge, got 'hing'; did you mean hinge?
2 train d m --counting avl | --counting belongs to --method published
2 train d m --method domniation | no method is named 'domniation'; did you mean 'domination'?
2 train d m --method | argument --method: expected one argument
2 train d m --scal none | unknown option --scal; did you mean --scale?
2 train d m --zzzzzz | unknown option --zzzzzz
2 train d m -z | unknown option -z
2 train d m n | one argument too many: n
2 train d m -q -v | not allowed with
2 train d - --json | exclude each other
2 train d m --bounds 2 | is not FEATURE:LOW:HIGH
2 train d m --positive --solver tron | --positive needs --solver newton, not tron
2 train - m --valid - | only one of the files
2 train d -o m -m map | -m needs --valid FILE
1 train nowhere.txt m | nowhere.txt: No such file or directory
1 train {train} nowhere/m | there is no folder
1 train {train} {folder} | is a folder
1 train {bad} out | bad.txt:2
1 train {flat} out | all 2 rows have the same label
1 train {train} out --valid nowhere | nowhere: No such file
1 train {train} out --valid {valid} -m ndgc | unknown metric
1 train {model} out | model.json: is JSON, like a model, not data
1 train {train} {train} | train.txt: is read and would be overwritten
1 train {train} {valid} --valid {valid} | valid.txt: is read and would be overwritten
1 train {train} out --qrels {other_qrels} | is judged in
1 train {train} out --bounds 7:0: | feature 7 is not in the data, whose features are 1 to 6
1 train {train} out --bounds 0:0: | feature 0 is not in the data
1 train {train} out --bounds x:0: | feature x is not in the data
1 train {train} out --bounds 2:1:0 | no coefficient of feature 2 is between
1 train {train} out --bounds @missing | missing
1 train {sidecar} out | ignore the files beside the data with --no-sidecars
1 train {two} out --method sgd --algorithm logistic --record exact | the logistic loss has no such
1 train {signed} out --method domination --margin log | row 0, above the lowest layer of its query
1 train {signed} out --method domination --layers binary | all 2 rows are in the same layer by

1 train {store} out --dtype float64 | --dtype float64 cannot change; leave --dtype out
1 train {store} out --index-base 0 | --index-base 0 cannot change; leave --index-base out
1 train {store} out --memory-limit 1MB | too small
2 train {two} out --memory-limit 1GB | is no store; write one first: linrank convert
1 train {store} out --memory-limit 1GB --solver bundle | use solver='newton'
1 train {store} out --memory-limit 1GB --index-base 0 | --index-base is for text
2 train {store} out --method sgd --passes 2 | --passes needs --memory-limit
2 train {store} out --checkpoint weights | --checkpoint needs --dask
2 train {train} out --no-labels | --no-labels needs --preferences FILE

2 train d m --stream | --stream belongs to --method sgd
2 train d m --method sgd --stream -c 1 | --stream excludes -c
2 train d m --method sgd --stream --n-steps 5 | give --steps-per-row
2 train d m --method sgd --stream --scale standard | needs --scale auto or none, not standard
2 train d m --method sgd --stream --algorithm hybrid | --stream needs --algorithm pegasos or
2 train d m --method sgd --stream --memory-limit 40MB | must be at least 50MB, got 40MB
2 train d m --method sgd --stream --checkpoint-every 5 | --checkpoint-every needs --checkpoint
2 train - m --method sgd --stream --passes 2 | standard input is gone once it is read
2 train {store} m --method sgd --stream | leave it out, and --memory-limit SIZE goes through a store
2 train {two} m --method sgd --stream --checkpoint - | --checkpoint needs a file
2 train {two} m --method sgd --stream --checkpoint m | MODEL and --checkpoint are one file
1 train {two} m --method sgd --stream --checkpoint {two} | is read and would be overwritten
1 train {bad} m --method sgd --stream | bad.txt:2:
1 train {table} m --method sgd --stream | table.parquet: is parquet, and --stream reads SVMlight
1 train {huge} m --method sgd --stream | huge.txt:2:9: feature index 2,000,000,000
1 train {huge} m --method sgd --stream | give more than --memory-limit 150MB
1 train {long} m --method sgd --stream | long.txt:2: a line has more than 2,343,
1 train {flat} m --method sgd --stream | no two rows could be compared: all 2 labels are 1
1 train {alone} m --method sgd --stream | no query id comes twice in 2 rows
1 train {empty} m --method sgd --stream | empty
1 train {weighted} m --method sgd --stream | has a weight
1 train {bare} m --method sgd --stream | bare.txt: none of the 2 rows has a feature

2 tune | required: DATA
2 tune d --folds 1 | argument --folds: must be an integer ≥ 2, got '1'
2 tune d --folds 3 --valid v | --folds excludes --valid
2 tune d --selection one_se --valid v | that needs the spread over folds
2 tune d -m map,mrr | tune chooses by one metric, map; measure the model by mrr
2 tune {store} --memory-limit 2GB --valid {store} | leave out --valid
2 tune {two} --memory-limit 2GB | is no store; write one first: linrank convert
1 tune nowhere | No such file
1 tune {train} -m accurracy | accurracy
1 tune {train} --folds 41 | 40 queries cannot fill 41 folds

2 predict d m --topk 3 | --topk needs --trec
2 predict d m --trec --tag 'a b' | --tag must be one word, got 'a b'
2 predict d m s -o t | -o t and s both name SCORES
1 predict {valid} nowhere | nowhere: No such file or directory
1 predict {valid} {train} | train.txt: not JSON
1 predict {valid} {model} -o {model} | model.json: is read and would be overwritten
1 predict {valid} {model} --missing zero | a model does with missing values what it was trained
1 predict {folder} {model} --stream | is a folder, and --stream reads SVMlight text
1 predict {table} {model} --stream | table.parquet: is parquet, and --stream reads SVMlight text
1 predict {back} {by_query} --stream | query 1 comes back
2 predict d m --trec -o run.csv | --trec writes lines of text, and run.csv would be a table
2 predict d m --stream -o s.parquet | --stream writes lines of text, and s.parquet
1 predict {valid} {model} -o s.parquet.gz | only text is compressed as a whole

2 evaluate | give DATA and its scores, or --qrels and --run
2 evaluate d | give either SCORES or --model
2 evaluate d s --model m | give either SCORES or --model
2 evaluate - - | only one of the files
2 evaluate d s --json -o - | would both be written to standard output
2 evaluate --qrels q | --qrels needs --run
2 evaluate --run r | --run needs --qrels
2 evaluate d --qrels q --run r | take the place of DATA
2 evaluate --qrels - --run - | only one of the files can be standard input
2 evaluate d s --complete | --complete needs --run
1 evaluate {valid} {scores} -o {scores} | scores.txt: is read and would be overwritten
1 evaluate nowhere {scores} -m ndgc | unknown metric 'ndgc'
1 evaluate {valid} {model} | model.json:1: expected one finite score
1 evaluate {valid} {short} | has 2 scores,
1 evaluate {valid} {words} | words.txt:2: expected one finite score, got 'two'
1 evaluate {valid} {nan} | nan.txt:2: expected one finite score, got 'nan'
1 evaluate {valid} {empty} | empty.txt: no scores
1 evaluate {valid} {latin} | latin.txt: byte 4 is not UTF-8
1 evaluate {shop} {shop} | scores of a table are its column 'score'
1 evaluate {valid} {scores} --convention mine | mine
1 evaluate --qrels {run} --run {qrels} | this looks like a run
1 evaluate --qrels {qrels} --run {run} -m ngcd@5 | Did you mean 'ndcg'
1 evaluate --qrels {qrels} --run {other_run} | the ids must be the same
1 evaluate --qrels {qrels} --run no-such | no-such

2 report {valid} | give --model MODEL to judge, or --train DATA
2 report {valid} --valid {valid} --model {model} | --valid needs --train: it is what C is chosen on
2 report {valid} --model {model} --Cs 1 | --Cs excludes --model
2 report {valid} --model {model} --save-model m | --save-model excludes --model
2 report {valid} --train {train} -o r --save-model r | name two files
2 report {valid} --train {train} --valid {valid} --folds 3 | --folds excludes --valid
2 report {valid} --model {model} --json -o - | --json and FILE would both be written to standard
2 report {valid} --train {train} --save-model - --json | --json and a model on standard output (-)
1 report {valid} --model {train} | train.txt:1: expected one finite score
1 report {valid} --model - | a model or scores must be a file here
1 report {valid} --model nowhere.json | nowhere.json: No such file
1 report {valid} --model {model} -o {model} | is read and would be overwritten
1 report {valid} --model {model} -m ndgc@10 | Did you mean 'ndcg'?
1 report {valid} --model {model} --against {short} | scores of shape (2,)
1 report {valid} --train {wide} | has 6 features
1 report {valid} --model {model} --names {names} | names.txt:2: a name is missing

2 compare {train} | give TRAIN VALID TEST or TRAIN TEST, got 1 files
2 compare --fold-files {train} {valid} | --fold-files needs at least 3 files (LETOR has 5)
2 compare --folds {train} {valid} | for files, one per fold, say compare --fold-files
2 compare {train} --fold-files {train} {valid} {wide} | not both
2 compare {train} {valid} - | cannot be standard input
2 compare {train} {valid} --folds 3 --selection validation | --folds excludes --selection validation
2 compare {train} {valid} -o - | the tables are on standard output anyway
2 compare {train} {valid} -o table.pdf | must end in .txt, .md, .html, .json
2 compare {train} {valid} --models {model} | give one FILE
2 compare {train} --models {model} --budget 3 | --budget is for training
1 compare {train} {valid} nowhere.txt | nowhere.txt: No such file
1 compare {train} {valid} --methods ranksvn | did you mean 'ranksvm'?
1 compare {train} {valid} -m ndgc@10 | Did you mean 'ndcg'?
1 compare {valid} --scores {scores} --baseline x | --baseline x is none of those
1 compare {train} {wide} --methods random --baseline random | wide.txt 9; use files of the same

2 convert {train} | name what to write as well: linrank convert DATA -o OUT
1 convert {train} s --memory-limit 1MB | must be at least 67.1 MB
1 convert {train} s --chunk-size 1GB | give a memory_limit of 4.0 GB
1 convert nowhere s | nowhere: No such file or directory
1 convert {train} {folder} | and is no store; name another folder
1 convert {model} s | is JSON, like a model
1 convert {train} s --n-features 3 | train.txt:1:
2 convert {train} - | OUT is -, standard output: say with --to which format
2 convert {train} - --to store | which format, but a store
2 convert {train} - --to csv --json | both want standard output
2 convert {train} s --to xml | invalid choice: 'xml'
1 convert {train} s.gz | only text is compressed as a whole
1 convert {train} s.txt --label y | --label is for tables, and
1 convert {train} s.txt --unjudged drop | --qrels, which is not given
1 convert {train} s.csv --storage csr | CSV has no place for sparse rows
1 convert {folder} s | has no manifest.json: it is no store
1 convert {train} s/deep | cannot be written: there is no folder

2 clicks l --features d -o m --eta 2 | --eta needs --propensity power-law
2 clicks l --features d -o m --propensity none --max-weight 3 | excludes --propensity none
2 clicks l --features d -o m --log-columns sesion=visit | 'sesion' of 'sesion=visit'
2 clicks l --features d -o m -m ndcg | -m needs --valid

2 export {model} | required: --to
2 export {model} --to elastic | did you mean 'elasticsearch'?
2 export {model} --to solr --option shop=1 | no option 'shop'; it has store, collection
2 export {model} --to solr --option store | must be KEY=VALUE, got 'store'
2 export {model} --to solr --option store=a --option store=b | store is given twice
1 export {model} --to solr -o {model} | would be overwritten
1 export {kernel} --to solr | is no sum over features
1 export {table} --to solr | a table (Parquet or Arrow), not a model

1 inspect nowhere | nowhere: No such file or directory
1 inspect {damaged} | values.bin: chunk 0
1 inspect {columns} | names of columns, say --format csv or tsv
1 inspect {fake} | its name says Parquet, but it begins with
1 inspect {numbers} | holds numbers; it must name the columns
1 inspect {plain} --label y | --label is for tables
1 inspect {store} --qid q | --qid is for tables, and
1 inspect {shop} --index-base 0 | leave out --index-base
2 inspect {model} --top none | must be an integer ≥ 1 or all, got 'none'
1 check {valid} --against {kernel} | check compares the features of linear and of additive models
2 check {valid} | required: --against

1 train {gaps} out | say what stands in for missing values with --missing zero, mean or indicator
1 train {unnamed} out | choose with --label, or --label none
1 train {weight} out | say --weight weight, or --weight none if it is a feature
1 train {rank} out | say --position rank, or --position none if it is a feature
1 train {gaps} out --qid none --missing zero | 'qid' would be a feature
1 train {gaps} out --qid none --missing zero | give --qid qid
"""
ROWS = [line.partition(" | ")[::2] for line in REFUSED.splitlines() if line]


@pytest.mark.parametrize(("line", "message"), ROWS, ids=[line for line, _ in ROWS])
def test_it_is_one_line_and_nothing_is_written(line, message, place, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    status, command = line.split(" ", 1)
    out, err = cli(command, status=int(status), **place)
    *notes, told = err.splitlines()
    assert message in told
    assert out == ""
    assert re.match("linrank: error: " if status == "1" else r"linrank( \w+)?: error: ", told)
    assert status == "1" or not notes
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == []
