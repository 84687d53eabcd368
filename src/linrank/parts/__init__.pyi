"""The names that linrank.parts offers, and where each lives."""

from linrank.parts.gathered_rows import gather_rows as gather_rows
from linrank.parts.parts import GROUP as GROUP
from linrank.parts.parts import Facts as Facts
from linrank.parts.parts import Gathering as Gathering
from linrank.parts.parts import MemoryParts as MemoryParts
from linrank.parts.parts import Parts as Parts
from linrank.parts.parts import Task as Task
from linrank.parts.parts import joined as joined
from linrank.parts.parts import pieces as pieces
from linrank.parts.parts import tree_sum as tree_sum
from linrank.parts.passes import StoreParts as StoreParts
from linrank.parts.recipes import Chunk as Chunk
from linrank.parts.recipes import Recipe as Recipe
from linrank.parts.recipes import SharedChunk as SharedChunk
from linrank.parts.risk import Totals as Totals
from linrank.parts.risk import evaluate as evaluate
from linrank.parts.train import train_parts as train_parts
from linrank.parts.train import train_path_parts as train_path_parts
from linrank.parts.train import weighs_by_measure as weighs_by_measure
from linrank.parts.validation import folds_of as folds_of
from linrank.parts.validation import measure_parts as measure_parts
