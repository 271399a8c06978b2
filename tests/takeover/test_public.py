# SPDX-License-Identifier: Apache-2.0
"""Scripts in the shapes of public ones give the same results as without Stoker; ``make recipes`` runs more of them."""

from __future__ import annotations

import numpy as np
import pytest
from photographs import photograph
from PIL import Image

from tests.complete import sample
from tests.takeover.recipes.catalogue import RECIPES, run, run_taken_over

# The other recipes need packages that the tests' environment lacks, or take seconds to start.
pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set")
LIGHT = [name for name, recipe in RECIPES.items() if not recipe.needs and "spawned" not in name]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two class folders of colour photographs."""
    root = tmp_path_factory.mktemp("public") / "photos"
    for at in range(34):
        folder = root / ("one", "two")[at % 2]
        folder.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(photograph(at, 150 + 17 * (at % 3), 180 + 13 * (at % 4)))
        image.save(folder / f"{at}.jpg", quality=85)
    return str(root)


@pytest.mark.parametrize(
    ("name", "workers"), [*((name, 0) for name in LIGHT), *((name, 2) for name in sample(LIGHT, 9))]
)
def test_a_recipe(photos: str, name: str, workers: int) -> None:
    expected = run(RECIPES[name], photos, workers)
    ours = run_taken_over(RECIPES[name], photos, workers)
    assert ours.run.images == expected.images > 0
    assert ours.run.digest == expected.digest


def test_a_planted_difference_is_detected(photos: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(RECIPES[LIGHT[0]], photos, 0)
    opened = Image.open

    def altered(file: object) -> Image.Image:
        array = np.array(opened(file))  # type: ignore[arg-type]
        array[0, 0, 0] ^= 1
        array[:, :, 1] = np.where(array[:, :, 1] == 7, 8, array[:, :, 1])
        return Image.fromarray(array)

    monkeypatch.setattr(Image, "open", altered)
    assert run(RECIPES[LIGHT[0]], photos, 0).digest != expected.digest
