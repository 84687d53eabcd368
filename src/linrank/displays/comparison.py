"""Display of a comparison: methods against a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linrank import plots
from linrank.displays.base import Display
from linrank.plots.axes import readable
from linrank.plots.comparison_plots import chosen_metric, differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class ComparisonDisplay(Display):
    """The difference of each method from the baseline: :func:`linrank.plots.comparison`.

    Parameters
    ----------
    comparison : Comparison
        What :func:`linrank.compare` returns.
    metric : str, optional
        Which measure; the first one when absent.
    """

    comparison: Any
    metric: str | None = None

    @classmethod
    def from_comparison(cls, comparison: Any, metric: str | None = None) -> ComparisonDisplay:
        """Display of one measure of a comparison; all it needs is ``cells`` and their names."""
        return cls(comparison, chosen_metric(comparison, metric))

    @property
    def title(self) -> str:
        """What the picture is."""
        return (
            f"{readable(self._metric, 40)}: difference from "
            f"{readable(self.comparison.baseline, 40)}"
        )

    @property
    def description(self) -> str:
        """Every difference with its interval."""
        told = (
            f"{readable(name)} {cell.difference:+.4f} "
            f"({cell.difference_low:+.4f} to {cell.difference_high:+.4f})"
            for name, cell in differences(self.comparison, self._metric)
        )
        return f"{'; '.join(told)}."

    @property
    def _metric(self) -> str:
        return chosen_metric(self.comparison, self.metric)

    @property
    def _height(self) -> float:
        return 1.5 + 0.34 * max(2, len(differences(self.comparison, self._metric)))

    def _draw(self, axes: Sequence[Axes], style: dict[str, Any]) -> None:
        plots.comparison(self.comparison, metric=self._metric, ax=axes[0], **style)
