"""Errors of pyarrow as ours, with the name of the file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from linrank.errors import DataFormatError
from linrank.io.tables.columns import arrow
from linrank.system.durable import naming

_LONGEST = 300  # characters of a foreign message


@contextlib.contextmanager
def reading(source: str, what: str) -> Iterator[None]:
    """Turn what pyarrow raises on bad contents into a DataFormatError; ``what`` is the format."""
    pa = arrow()
    try:
        with naming(source):
            yield
    except DataFormatError:
        raise
    except pa.ArrowMemoryError as error:
        raise MemoryError(f"{source}: reading this {what} file: {_words(error)}") from error
    except pa.ArrowException as error:
        raise DataFormatError(f"{source}: damaged {what} data: {_words(error)}") from error
    except UnicodeDecodeError as error:
        raise DataFormatError(f"{source}: {what} data with text that is not UTF-8") from error
    except OSError as error:
        # pyarrow reports contents it cannot make sense of as an OSError without a number.
        if error.errno is not None:
            raise
        raise DataFormatError(f"{source}: damaged {what} data: {_words(error)}") from error


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."
