"""The names that linrank.domination offers, and where each lives."""

from linrank.domination.induction import InductionResult as InductionResult
from linrank.domination.layering import Layering as Layering
from linrank.domination.layering import margin_form as margin_form
from linrank.domination.layering import margin_of_part as margin_of_part
from linrank.domination.path import DominationPathResult as DominationPathResult
from linrank.domination.path import alphas_by_slopes as alphas_by_slopes
from linrank.domination.path import as_alphas as as_alphas
from linrank.domination.path import each_from_last as each_from_last
from linrank.domination.path import geometric_alphas as geometric_alphas
from linrank.domination.path import until_wide as until_wide
from linrank.domination.problem import DominationProblem as DominationProblem
from linrank.domination.train import certify as certify
from linrank.domination.train import check_parameters as check_parameters
from linrank.domination.train import choose_solver as choose_solver
from linrank.domination.train import describe_parameters as describe_parameters
from linrank.domination.train import make_problem as make_problem
from linrank.domination.train import minimize_ridge as minimize_ridge
