# SPDX-License-Identifier: Apache-2.0
"""The photographs that the demonstration's data set is made of: files of the scikit-image distribution.

Only pictures whose documentation in scikit-image states a free licence are used:

===================== ============ =====================================================
file                  licence      credit
===================== ============ =====================================================
astronaut.png         public dom.  Eileen Collins, NASA Great Images
chelsea.png           CC0          Stefan van der Walt
coffee.png            CC0          Rachel Michetti, Pikolo Espresso Bar
hubble_deep_field.jpg public dom.  NASA, Hubble eXtreme Deep Field
retina.jpg            CC0          Mikael Häggström
rocket.jpg            public dom.  SpaceX, DSCOVR on Falcon 9
camera.png (gray)     CC0          Lav Varshney
brick.png (gray)      CC0          CC0Textures, Bricks25
grass.png (gray)      CC0          linolafett, DeviantArt
gravel.png (gray)     CC0          CC0Textures, Gravel04
===================== ============ =====================================================

The files are found through the distribution's own file list, so that scikit-image is never imported and its
dependencies need not be there: ``pip install --no-deps scikit-image`` is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

DISTRIBUTION = "scikit-image"
INSTALL_COMMAND = "python -m pip install --no-deps scikit-image"

_COLOUR = {
    "astronaut": "astronaut.png",
    "cat": "chelsea.png",
    "coffee": "coffee.png",
    "galaxies": "hubble_deep_field.jpg",
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
}
_GRAY = {"photographer": "camera.png", "brick": "brick.png", "grass": "grass.png", "gravel": "gravel.png"}


@dataclass(frozen=True)
class Photo:
    """Source photograph: its class, its path, and whether it has colour."""

    label: str
    path: Path
    gray: bool


class PhotosMissing(RuntimeError):
    """The distribution with the photographs is not installed, or no longer contains them."""


def find_photos() -> list[Photo]:
    """List the photographs of the installed scikit-image distribution, colour first, in a fixed order.

    A later release may lack one. The others still make a data set, so only their complete absence is an error.

    Raises:
        PhotosMissing: The distribution is not installed, or has no colour photograph; the text says what to do.
    """
    try:
        files = metadata.files(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        raise PhotosMissing(
            f"the demonstration's photographs come from {DISTRIBUTION}, which is not installed. "
            f"Run `{INSTALL_COMMAND}`, or give a folder of your own with --data."
        ) from None
    found = {file.name: Path(str(file.locate())) for file in files if file.parent.as_posix() == "skimage/data"}
    wanted = [(label, name, False) for label, name in _COLOUR.items()]
    wanted += [(label, name, True) for label, name in _GRAY.items()]
    photos = [
        Photo(label, found[name], gray) for label, name, gray in wanted if name in found and found[name].is_file()
    ]
    if all(photo.gray for photo in photos):
        raise PhotosMissing(
            f"{DISTRIBUTION} {version()} holds none of the photographs that the demonstration uses. "
            "Give a folder of your own with --data."
        )
    return photos


def version() -> str:
    """Return the version of the installed distribution, which is recorded with a data set made from its photographs."""
    return metadata.version(DISTRIBUTION)
