"""The model file: versioned JSON, with safetensors beside it for very large models.

A file is data from anywhere: every size is bounded before memory is taken for it, every type is
checked, and whatever is wrong ends in a ModelFormatError that names the file and the remedy.
"""

from linrank.model_file.contents import Contents, KernelContents
from linrank.model_file.read import read
from linrank.model_file.write import write

__all__ = ["Contents", "KernelContents", "read", "write"]
