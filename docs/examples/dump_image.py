# SPDX-License-Identifier: Apache-2.0
import os
import tempfile
from pathlib import Path

import numpy as np

from stoker import eager

image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
here = Path.cwd()
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    eager.dump_image(image, suffix="tiny")
    print(Path("0-tiny-0.ppm").read_text(encoding="ascii").split())
    os.chdir(here)
# ['P3', '2', '2', '255', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11']

# ---- figure ----
from figures import cells

figure = {"image, a line per row": cells(image.reshape(2, 6)), "first numbers": cells(np.array([2, 2, 255, 0, 1, 2]))}
