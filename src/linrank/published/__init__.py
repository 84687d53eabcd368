"""The methods of the literature, apart from the production path: for comparison and teaching.

Each way of counting the violated pairs is a short file of ``core/published`` behind one interface;
all give the same sums. One thread, double precision, rows in CSR.
"""

from linrank.options import COUNTINGS
from linrank.published.counting import Counted, TreeHinge
from linrank.published.method import published_loss
from linrank.published.prsvm import ExplicitPairs

__all__ = ["COUNTINGS", "Counted", "ExplicitPairs", "TreeHinge", "published_loss"]
