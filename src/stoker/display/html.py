# SPDX-License-Identifier: Apache-2.0
"""HTML for notebooks: figures and tables that need no other file. All texts are escaped."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Iterable, Sequence

from PIL import Image

_FORBIDDEN = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """Return a text as HTML and XML show it. Code points that XML forbids become U+FFFD."""
    return html.escape(_FORBIDDEN.sub("\ufffd", text))


def paragraph(text: str) -> str:
    """Return a line of monospaced text."""
    return f'<p style="font-family:monospace;margin:4px 0">{escape(text)}</p>'


def figures(images: Sequence[Image.Image | None], captions: Iterable[str], side: int) -> str:
    """Return images with captions, in rows that wrap. Figures are at least ``side`` pixels wide."""
    cells = []
    for image, caption in zip(images, captions, strict=True):
        picture = "<i>empty</i>" if image is None else _embed(image, caption)
        width = side if image is None else max(side, image.width)
        text = f'<figcaption style="overflow-wrap:anywhere;font-size:85%">{escape(caption)}</figcaption>'
        cells.append(f'<figure style="margin:0;width:{width}px">{picture}{text}</figure>')
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px;align-items:flex-end">{"".join(cells)}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    first = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><tr>{first}</tr>{body}</table>"


def _embed(image: Image.Image, caption: str) -> str:
    stream = io.BytesIO()
    image.save(stream, "PNG")
    data = base64.b64encode(stream.getvalue()).decode()
    size = f'width="{image.width}" height="{image.height}"'
    return f'<img src="data:image/png;base64,{data}" {size} alt="{escape(caption)}">'
