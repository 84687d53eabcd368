"""The model file: versioned JSON, with safetensors beside it for very large models.

A file is data from anywhere: every size is bounded before memory is taken for it, every type is
checked, and whatever is wrong ends in a ModelFormatError that names the file and the remedy.
"""

from linrank.models.file.contents import Contents, KernelContents
from linrank.models.file.read import read
from linrank.models.file.write import write

__all__ = ["Contents", "KernelContents", "read", "write"]
