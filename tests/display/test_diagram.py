# SPDX-License-Identifier: Apache-2.0
"""Diagrams: well-formed, escaped, no two boxes overlap, arrows lead downwards. HTML of notebooks is escaped."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET

import pytest
from PIL import Image

from stoker.display.diagram import Arrow, Box, draw_diagram
from stoker.display.html import escape, figures, paragraph, table

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('x')</script>&\"\x1b\ufffe\ud800"


def rectangles(svg: str) -> list[tuple[float, float, float, float]]:
    found = [r for r in ET.fromstring(svg).iter(f"{SVG}rect") if r.get("x")]
    return [tuple(float(r.get(k, "")) for k in ("x", "y", "width", "height")) for r in found]  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(20))
def test_boxes_do_not_overlap_and_arrows_lead_downwards(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randint(1, 25)
    boxes = [Box("x" * draw.randint(1, 30), ("y",) * draw.randint(0, 3)) for _ in range(count)]
    pairs = {tuple(sorted(draw.sample(range(count), 2))) for _ in range(draw.randint(0, 40)) if count > 1}
    arrows = [Arrow(a, b, label="if") for a, b in sorted(pairs)]
    svg = draw_diagram(boxes, arrows)
    placed = rectangles(svg)
    width, height = (float(ET.fromstring(svg).get(k, "")) for k in ("width", "height"))
    assert len(placed) == count
    for i, (x, y, w, h) in enumerate(placed):
        assert x >= 0 and y >= 0 and x + w <= width + 1 and y + h <= height + 1
        for a, b, c, d in placed[:i]:
            assert x + w <= a or a + c <= x or y + h <= b or b + d <= y
    for arrow in arrows:
        (_, top, _, box_height), (_, below, _, _) = placed[arrow.start], placed[arrow.end]
        assert top + box_height < below


def test_a_chain_is_straight() -> None:
    centres = {x + w / 2 for x, _, w, _ in rectangles(
        draw_diagram([Box("a"), Box("a longer title"), Box("b")], [Arrow(0, 1), Arrow(1, 2)]))}  # fmt: skip
    assert max(centres) - min(centres) < 0.2


def test_hostile_texts_are_escaped() -> None:
    svg = draw_diagram([Box(HOSTILE, (HOSTILE,), tooltip=HOSTILE), Box("b")], [Arrow(0, 1, label=HOSTILE)])
    root = ET.fromstring(svg)
    assert root.find(f".//{SVG}script") is None and "alert" in "".join(root.itertext())
    for text in (paragraph(HOSTILE), table([HOSTILE], [[HOSTILE]]), figures([Image.new("RGB", (2, 2))], [HOSTILE], 9)):
        assert "<script" not in text and "alert" in text
        text.encode()
    assert escape('"<\u4e2d\U0001f600>\x00') == "&quot;&lt;\u4e2d\U0001f600&gt;\ufffd"


def test_arrows_must_lead_to_later_boxes() -> None:
    for arrow in (Arrow(1, 0), Arrow(0, 0), Arrow(0, 2), Arrow(-1, 1)):
        with pytest.raises(ValueError, match="from a box to a later one"):
            draw_diagram([Box("a"), Box("b")], [arrow])
