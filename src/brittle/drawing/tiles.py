"""Pictures in figures: many of them as one image, each pixel a square, no axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

GAP = 0.06  # between pictures, as a share of their width
TINY = 1e-12

Picture = np.ndarray | None  # (h, w, 3) in [0, 1]; None leaves its place white


def photo(x: np.ndarray) -> np.ndarray:
    """A photo's bytes as numbers in [0, 1]."""  # (h, w, 3) uint8
    return x / 255.0


def signed(x: np.ndarray) -> Picture:
    """Signed values around grey, scaled by the largest; None if all are 0."""  # (3, h, w) -> (h, w, 3)
    most = np.abs(x).max()
    return 0.5 + 0.5 * x.transpose(1, 2, 0) / most if most > TINY else None


def shifted(x: np.ndarray) -> np.ndarray:
    """A picture without its mean, on grey."""  # (3, h, w) -> (h, w, 3)
    return (0.5 + x.transpose(1, 2, 0)).clip(0, 1)


def montage(rows: Sequence[Sequence[Picture]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One image of all pictures, and the centres of its columns and rows; rows may differ in length."""
    h, w, _ = next(picture.shape for row in rows for picture in row if picture is not None)
    gap, columns = max(1, round(GAP * w)), max(len(row) for row in rows)
    image = np.ones((len(rows) * (h + gap) - gap, columns * (w + gap) - gap, 3))
    for i, row in enumerate(rows):
        for j, picture in enumerate(row):
            if picture is not None:
                image[i * (h + gap) :, j * (w + gap) :][:h, :w] = picture
    across, down = np.arange(columns) * (w + gap) + w / 2 - 0.5, np.arange(len(rows)) * (h + gap) + h / 2 - 0.5
    return image, across, down


def show(
    ax: Axes, rows: Sequence[Sequence[Picture]], names: Sequence[str] | None = None, above: Sequence[str] | None = None
) -> None:
    """Draw the pictures, with the names of the rows on the left and of the columns above."""
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labeltop=above is not None, labelbottom=False)
    ax.set(xticks=[], yticks=[])
    if not any(picture is not None for row in rows for picture in row):
        ax.annotate("none", (0.5, 0.5), xycoords="axes fraction", ha="center", va="center")
        return
    image, across, down = montage(rows)
    # `none`: an svg gets the pixels themselves and a note not to smooth them; a png, the nearest pixel.
    ax.imshow((255 * image).round().astype(np.uint8), interpolation="none")
    if names is not None:
        ax.set_yticks(down, names)
    if above is not None:
        ax.set_xticks(across, above)
