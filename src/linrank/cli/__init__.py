"""usage: linrank COMMAND [options]

Learning to rank from preferences: exact linear RankSVM on all pairs.

options:
  -h, --help  show this
  --version   show the version

commands:
{commands}

`linrank COMMAND --help` describes each. `-` as a file name is standard input or output.

exit status:
  0    done
  1    bad data, a bad file or a bad value; one line on standard error says which
  2    wrong usage of the command line
  3    train, tune, clicks, report: all was written, but the solver stopped before its tolerance
  4    check: the data do not fit the model
  130  interrupted (Ctrl-C); no half-written file is left behind
  143  told to end (SIGTERM), likewise; 129 for a terminal that was closed (SIGHUP)
  141  the reader of our output went away (linrank predict ... | head)
"""
