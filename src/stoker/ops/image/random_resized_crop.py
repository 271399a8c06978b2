# SPDX-License-Identifier: Apache-2.0
"""``random_resized_crop``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.operator import IMAGES
from ...contract.resizing import FilterArguments


class RandomResizedCrop(FilterArguments, name="random_resized_crop"):
    """Cut a random window and resize it. Input: HWC, CHW, HW or these with a leading F. Output: the same layout.

    The window is drawn as in torchvision's RandomResizedCrop (see ``random_crop_generator``). All frames of a video
    share it. The crop comes first, then the resize, as in torchvision: the filter does not read around the window
    (DALI's does). uint8 equals Pillow's ``crop`` and ``resize`` bit for bit.
    """

    default_layouts = IMAGES
    version = 2  # version 1 rounded to the image's type before `dtype`
    draws = 1
    size = arg("int", many=True, per_axis=True, doc="Output (height, width) in pixels, or one number for both.")
    random_area = arg(
        "float", (0.08, 1.0), many=True, doc="Range of the window's share of the area, above 0 and up to 1."
    )
    random_aspect_ratio = arg("float", (3 / 4, 4 / 3), many=True, doc="Range of width over height, above 0.")
    num_attempts = arg("int", 10, doc="Attempts before the largest centred window of a permitted ratio is taken.")
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")
    cases = (
        {"size": (8, 6)},
        {"size": (9,), "random_area": (0.5, 1.0), "interp_type": "INTERP_CUBIC"},
        {"size": (5, 7), "antialias": False, "dtype": "float32"},
    )

    def compose(self, c: Any, x: Any) -> Any:
        c.require(all(n > 0 for n in c.const("size")), "expected a `size` of at least 1")
        height, width = c.axis(x, "H"), c.axis(x, "W")
        shape = c.apply("shapes", x)
        if height:  # the generator takes height and width first
            shape = c.apply("slice", shape, start=(height,), shape=(2,), axes=(0,))
        anchor, extent = c.apply(
            "random_crop_generator", shape, random_area=c.const("random_area"),
            random_aspect_ratio=c.const("random_aspect_ratio"), num_attempts=c.const("num_attempts"),
        )  # fmt: skip
        window = c.apply("slice", x, start=anchor, shape=extent, axes=(height, width))
        filters = {name: c.pass_on(name) for name in FilterArguments.declared()}
        return c.apply("resize", window, size=c.const("size"), dtype=c.const("dtype"), **filters)
