"""docs/pictures/head-to-head.svg: what each mechanism loses on each profile, as colours, from the
stored result.

./dev python -m benchmarks.picture [--output FILE]

The picture names a digest of the result that it shows, so that a stale one can be told; it holds no
date.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

from benchmarks.harness import RESULTS
from benchmarks.markdown import Result

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "head-to-head.svg"
SHOWN = ("1", "1e-6")


def digest(result: Path) -> str:
    """Twelve hexadecimal digits of a stored result."""
    return hashlib.sha256(result.read_bytes()).hexdigest()[:12]


def in_step(result: Path, picture: Path = PICTURE) -> bool:
    """Whether the picture was drawn from this result."""
    return picture.is_file() and f"result {digest(result)}" in picture.read_text(encoding="utf-8")


def draw(source: Path, output: Path = PICTURE) -> None:
    """Darker is worse: from at most a thousandth of the best count lost to all of it."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt
    from matplotlib.colors import LogNorm

    result: Result = json.loads(source.read_text(encoding="utf-8"))
    place = [tuple(price) for price in result["settings"]["prices"]].index(SHOWN)
    profiles = result["profiles"]
    losses = {
        (row["mechanism"], row["universe"], row["profile"]): row["cells"][place]["loss"]
        for row in result["rows"]
    }
    lines = list(dict.fromkeys((mechanism, universe) for mechanism, universe, _ in losses))
    parts = [
        [losses[*line, profile["name"]] / profile["best"] for profile in profiles] for line in lines
    ]

    with matplotlib.rc_context({"svg.hashsalt": "privmax", "svg.fonttype": "path", "font.size": 9}):
        figure, axes = plt.subplots(figsize=(11, 6.6), layout="constrained")
        shades = axes.imshow(
            [[max(part, 1e-3) for part in row] for row in parts],
            norm=LogNorm(1e-3, 1),
            cmap="Blues",
            aspect="auto",
        )
        for down, row in enumerate(parts):
            for across, part in enumerate(row):
                if part >= 5e-4:
                    text = f"{part:.3f}" if part < 0.01 else f"{part:.2f}"
                    axes.text(
                        across, down, text.lstrip("0"), ha="center", va="center", size=6.5,
                        color="white" if part > 0.06 else "black",
                    )  # fmt: skip
        axes.set_xticks(
            range(len(profiles)),
            [profile["name"] for profile in profiles],
            rotation=40,
            ha="right",
            rotation_mode="anchor",
        )
        names = {"open": "open", "natural": "known items", "10^12": "10^12 known items"}
        axes.set_yticks(
            range(len(lines)), [f"{mechanism} ({names[universe]})" for mechanism, universe in lines]
        )
        axes.set_xticks([across - 0.5 for across in range(1, len(profiles))], minor=True)
        axes.set_yticks([down - 0.5 for down in range(1, len(lines))], minor=True)
        axes.grid(which="minor", color="white", linewidth=1)
        axes.tick_params(which="both", length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(
            f"Part of the best count lost, no answer counted as all of it (ε = {SHOWN[0]}, δ = "
            f"{SHOWN[1]})",
            loc="left",
        )
        figure.colorbar(shades, ax=axes, pad=0.01, shrink=0.6)
        output.parent.mkdir(parents=True, exist_ok=True)
        metadata = (
            {"Date": None, "Description": f"result {digest(source)}"}
            if output.suffix == ".svg"
            else None
        )
        figure.savefig(output, metadata=metadata, dpi=110)
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Draw the picture of docs/head-to-head.md from the stored result."
    )
    parser.add_argument("--output", type=Path, default=PICTURE)
    draw(RESULTS / "head-to-head.json", parser.parse_args().output)


if __name__ == "__main__":
    main()
