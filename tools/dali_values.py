# SPDX-License-Identifier: Apache-2.0
"""Compare values with NVIDIA DALI and write the tables of docs/migrating_from_dali.md.

``python tools/dali_values.py PYTHON``: PYTHON is an interpreter with nvidia-dali (a CPU is enough). The program stores
DALI's outputs in tests/compat/dali_values.npz, with which the tests compare, so that they do not need DALI. It stores
the tables of DALI's automatic augmentations in tests/compat/dali_policies.json.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dali_cases import CASES

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "compat" / "dali_values.npz"
POLICIES = ROOT / "tests" / "compat" / "dali_policies.json"
PAGE = ROOT / "docs" / "migrating_from_dali.md"
POLICY_TOOL = ROOT / "tools" / "dali_policies.py"
TOOL = ROOT / "tools" / "dali_cases.py"


def picture(rng: Any, height: int, width: int) -> Any:
    """Return a picture between noise and a photograph: smooth shapes, edges and some grain."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    smooth = np.stack([np.sin(x / 5 + k) * 60 + np.cos(y / (4 + k)) * 50 for k in range(3)], -1)
    edges = ((x // 9 + y // 7) % 2)[..., None] * 60
    return np.clip(128 + smooth + edges - 30 + rng.normal(0, 6, (height, width, 3)), 0, 255).astype(np.uint8)


def encoded(image: Any, form: str = "JPEG", **options: Any) -> Any:
    """Return the bytes of a file."""
    file = io.BytesIO()
    image.save(file, form, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def make_inputs() -> dict[str, Any]:
    """Return named rows: ``<input>_<row>``."""
    rng = np.random.default_rng(5)
    rows: dict[str, Any] = {}
    for i, (height, width) in enumerate([(24, 31), (30, 28)]):
        pixels = picture(rng, height, width)
        image = Image.fromarray(pixels)
        rows[f"image_{i}"] = pixels
        rows[f"float_{i}"] = (pixels / 255).astype(np.float32)
        rows[f"volume_{i}"] = np.stack([pixels[k : k + 12, k : k + 14] for k in range(6)])
        rows[f"jpeg_{i}"] = encoded(image, quality=85, subsampling=2)
        rows[f"progressive_{i}"] = encoded(image, quality=85, progressive=True)
        rows[f"png_{i}"] = encoded(image, "PNG")
        rows[f"cmyk_{i}"] = encoded(image.convert("CMYK"), quality=90)
        exif = Image.Exif()
        exif[0x0112] = 6
        rows[f"exif_{i}"] = encoded(image, quality=85, exif=exif)
        rows[f"signed_{i}"] = rng.integers(-50, 50, (6, 7)).astype(np.int32) * 2 + 1
        rows[f"wide_{i}"] = rng.normal(100, 200, (6, 7)).astype(np.float32)
        rows[f"halves_{i}"] = np.arange(-4, 4, dtype=np.float32) + 0.5
    return rows


def outputs_of(python: str, module: str, inputs: Path, target: Path) -> dict[str, Any]:
    """Run all cases with one library."""
    subprocess.run([python, str(TOOL), module, str(inputs), str(target)], check=True)
    return dict(np.load(target))


def compare(theirs: dict[str, Any], ours: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the differences between two libraries' rows of a case."""
    for side, found in (("DALI", theirs), ("Stoker", ours)):
        if f"{name}|error" in found:
            return {"verdict": f"{side} refuses: {found[f'{name}|error']}"}
    rows = sorted(k for k in theirs if k.startswith(f"{name}|"))
    a, b = [theirs[k] for k in rows], [ours[k] for k in rows if k in ours]
    if [x.shape for x in a] != [x.shape for x in b]:
        return {"verdict": f"shapes differ: DALI {a[0].shape}, Stoker {b[0].shape if b else 'none'}"}
    if a[0].dtype != b[0].dtype:
        return {"verdict": f"types differ: DALI {a[0].dtype}, Stoker {b[0].dtype}"}
    pairs = [(x.astype(np.float64), y.astype(np.float64)) for x, y in zip(a, b, strict=True)]
    apart = np.concatenate([np.abs(x - y).ravel() for x, y in pairs])
    facts = {"largest": apart.max(), "mean": apart.mean(), "share": (apart > 0).mean()}
    return {**{k: float(v) for k, v in facts.items()}, "dtype": str(a[0].dtype)}


def table(theirs: dict[str, Any], ours: dict[str, Any], groups: dict[str, list[str]]) -> str:
    """Return the results as Markdown."""
    lines: list[str] = []
    for group, names in groups.items():
        lines += [f"### {group.capitalize()}", ""]
        lines += ["| case | type | elements that differ | mean | largest |", "|---|---|---|---|---|"]
        for name in names:
            found = compare(theirs, ours, name)
            if "verdict" in found:
                lines.append(f"| {name} | | {found['verdict'].replace('|', '/')} | | |")
            elif not found["largest"]:
                lines.append(f"| {name} | {found['dtype']} | none | 0 | 0 |")
            else:
                figures = f"{found['share']:.2%} | {found['mean']:.3g} | {found['largest']:.3g}"
                lines.append(f"| {name} | {found['dtype']} | {figures} |")
        lines.append("")
    lines += draws(theirs, ours)
    for name in sorted(k[:-2] for k in theirs if k.startswith("shards")):
        lines += [f"Labels of ten files that two shards read in two epochs of batches of five ({name}):", ""]
        for library, found in (("DALI", theirs), ("Stoker", ours)):
            lines.append(f"- {library}: {found[f'{name}|0'].tolist()}")
        lines.append("")
    return "\n".join(lines)


def draws(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Return distributions of random numbers with the same seed, whose single values differ."""
    lines = ["### Random numbers", "", "100,000 draws with one seed.", ""]
    lines += [
        "| operator | library | mean | standard deviation | smallest | largest | equal draws |",
        "|---|" + "---|" * 6,
    ]
    for name in sorted(k[:-2] for k in theirs if k.startswith("random.")):
        a, b = theirs[f"{name}|0"], ours[f"{name}|0"]
        for library, x in (("DALI", a), ("Stoker", b)):
            facts = f"{x.mean():.4f} | {x.std():.4f} | {x.min():.4f} | {x.max():.4f} | {(a == b).mean():.2%}"
            lines.append(f"| {name} | {library} | {facts} |")
    return [*lines, ""]


def groups_of() -> dict[str, list[str]]:
    """Return the cases by group."""
    groups: dict[str, list[str]] = {}
    for name, (group, _, _) in CASES.items():
        groups.setdefault(group, []).append(name)
    return groups


def main() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "inputs.npz"
        inputs = make_inputs()
        np.savez(source, **inputs)
        theirs = outputs_of(sys.argv[1], "nvidia.dali", source, Path(folder) / "theirs.npz")
        ours = outputs_of(sys.executable, "stoker.dali", source, Path(folder) / "ours.npz")
    RECORD.parent.mkdir(exist_ok=True)
    policies = subprocess.run(
        [sys.argv[1], str(POLICY_TOOL), "nvidia.dali"], check=True, capture_output=True, text=True
    ).stdout
    POLICIES.write_text(policies, encoding="utf-8")
    compared = {k: v for k, v in theirs.items() if k.split("|")[0] in CASES}
    kept = {**{f"in:{k}": v for k, v in inputs.items()}, **{f"out:{k}": v for k, v in compared.items()}}
    np.savez_compressed(RECORD, **kept)
    text = table(theirs, ours, groups_of())
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(r"(<!-- measured -->\n).*?(<!-- end -->)", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda m: f"{m[1]}\n{text}\n{m[2]}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
