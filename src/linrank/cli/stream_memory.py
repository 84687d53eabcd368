"""What the memory of ``linrank train --stream`` is for."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1_000_000
LEAST_MEMORY = 100  # MB


@dataclass(frozen=True)
class Plan:
    """What the memory is for, in bytes. A function of ``--memory`` alone, or a run that goes on
    elsewhere would forget other rows than the one before it."""

    program: int
    reading: int
    weights: int
    buffer: int

    @classmethod
    def of(cls, megabytes: int) -> Plan:
        """48 MB of program, 12 of text, an eighth of batches, an eighth of weights; rows."""
        total = megabytes * MB
        program, reading, weights = 48 * MB, 12 * MB + total // 8, total // 8
        return cls(program, reading, weights, total - program - reading - weights)

    @property
    def most_columns(self) -> int:
        """A weight is a double, there is one for the average, and both are copied to be saved."""
        return min(self.weights // 64, 2**31 - 1)

    @property
    def batch_entries(self) -> int:
        """An entry of a batch is held up to three times: read, waiting, and joined."""
        return (self.reading - 12 * MB) // 24

    def __str__(self) -> str:
        """In words."""
        parts = {"rows": self.buffer, "program": self.program}
        parts |= {"reading": self.reading, "weights": self.weights}
        listed = " + ".join(f"{n // MB} MB {name}" for name, n in parts.items())
        return f"{sum(parts.values()) // MB} MB at most = {listed}"
