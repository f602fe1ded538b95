"""What does a machine look like? Draws docs/images/decision.png; needs matplotlib."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from sklearn.datasets import make_moons

from maxmargin import SVC, OneClassSVM

TARGET = Path(__file__).parent / "images" / "decision.png"
BLUE, ORANGE, INK = "#3b6ea8", "#d9822b", "#26323f"
SIDES = LinearSegmentedColormap.from_list("sides", ["#eba65e", "#fdfcfa", "#7fa8d6"])
DEPTH = LinearSegmentedColormap.from_list("depth", ["#eaf1f9", "#7fa8d6"])
ROOM = np.array([0.4, 0.8])  # beside the samples, and above them for the legend
N_GRID = 300


def main() -> None:
    plt.rcParams.update({"font.size": 10, "font.family": "DejaVu Sans"})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.4, 4.9), layout="constrained"
    )
    draw_classifier(left)
    draw_novelty(right)
    for axes in (left, right):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("#c8ced6")
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, dpi=130)
    print(f"{TARGET} ({TARGET.stat().st_size // 1024} KiB)")


def draw_classifier(axes) -> None:
    """Two moons: regions, margins, and the samples that hold them up."""
    X, y = make_moons(200, noise=0.22, random_state=3)
    machine = SVC(C=2.0, gamma=1.0).fit(X, y)
    grid, values = decisions(machine, X)
    shade(axes, grid, values)
    axes.contour(
        *grid,
        values,
        levels=[-1, 0, 1],
        colors=INK,
        linestyles=["--", "-", "--"],
        linewidths=[1.0, 1.8, 1.0],
    )
    scatter(axes, X, np.where(y == 1, BLUE, ORANGE))
    ring(axes, machine.support_vectors_)
    axes.set_title(
        f"SVC(C=2, gamma=1): {len(machine.support_)} of {len(X)} samples "
        "are support vectors",
        fontsize=10.5,
    )
    legend(axes, "decision boundary", dashed="margins")


def draw_novelty(axes) -> None:
    """One class: the region that holds about 90 % of the samples."""
    X, _ = make_moons(300, noise=0.09, random_state=1)
    machine = OneClassSVM(nu=0.1, gamma=4.0).fit(X)
    grid, values = decisions(machine, X)
    levels = np.linspace(0.0, values.max(), 7)
    axes.contourf(*grid, values, levels=levels, cmap=DEPTH)
    axes.contour(*grid, values, levels=[0.0], colors=INK, linewidths=1.8)
    is_inside = machine.predict(X) == 1
    scatter(axes, X, np.where(is_inside, BLUE, ORANGE))
    ring(axes, machine.support_vectors_)
    axes.set_title(
        f"OneClassSVM(nu=0.1, gamma=4): {np.count_nonzero(~is_inside)} of {len(X)} "
        "samples are outside",
        fontsize=10.5,
    )
    legend(axes, "boundary of the region", dot="outliers")


def decisions(machine, X):
    """((x, y), decision values) on a grid around the samples."""
    low, high = X.min(axis=0) - 0.4, X.max(axis=0) + ROOM
    grid = np.meshgrid(*np.linspace(low, high, N_GRID).T)
    points = np.column_stack([axis.ravel() for axis in grid])
    return grid, machine.decision_function(points).reshape(grid[0].shape)


def shade(axes, grid, values) -> None:
    reach = np.abs(values).max()
    levels = np.linspace(-reach, reach, 17)
    axes.contourf(*grid, values, levels=levels, cmap=SIDES)


def scatter(axes, X, colours) -> None:
    axes.scatter(*X.T, c=colours, s=20, edgecolors="white", linewidths=0.5, zorder=3)


def ring(axes, X) -> None:
    axes.scatter(
        *X.T, s=62, facecolors="none", edgecolors=INK, linewidths=0.9, zorder=4
    )


def legend(axes, line: str, dashed: str = "", dot: str = "") -> None:
    marks = [Line2D([], [], color=INK, lw=1.8, label=line)]
    if dashed:
        marks.append(Line2D([], [], color=INK, lw=1.0, ls="--", label=dashed))
    if dot:
        marks.append(Line2D([], [], ls="", marker="o", ms=5, color=ORANGE, label=dot))
    ring = {"ls": "", "marker": "o", "ms": 8, "mfc": "none", "mec": INK}
    marks.append(Line2D([], [], **ring, label="support vectors"))
    axes.legend(handles=marks, loc="upper right", fontsize=9, framealpha=0.9)


if __name__ == "__main__":
    main()
