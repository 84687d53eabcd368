"""The names that linrank.search offers, and where each lives."""

from linrank.search.folds import Fold as Fold
from linrank.search.folds import Models as Models
from linrank.search.folds import affordable_folds as affordable_folds
from linrank.search.folds import as_folds as as_folds
from linrank.search.folds import deal as deal
from linrank.search.folds import weight_of_part as weight_of_part
from linrank.search.tuning import FoldRun as FoldRun
from linrank.search.tuning import Judged as Judged
from linrank.search.tuning import Judging as Judging
from linrank.search.tuning import Sweep as Sweep
from linrank.search.tuning import Tuning as Tuning
