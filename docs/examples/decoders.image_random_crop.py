# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from stoker import eager

data = Path("astronaut.jpg").read_bytes()
# Five rows, and one draw per row:
windows = eager.decoders.image_random_crop([data] * 5, random_area=(0.1, 0.5), seed=2)
print(len(windows), windows[0].shape[2])  # 5 3

# ---- figure ----
figure = {"the file": eager.decoders.image(data)} | {f"row {i}": window for i, window in enumerate(windows)}
