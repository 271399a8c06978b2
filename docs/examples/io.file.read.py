# SPDX-License-Identifier: Apache-2.0
import tempfile
from pathlib import Path

import numpy as np

from stoker import eager

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "note.txt")
    path.write_text("eight by", encoding="ascii")
    read = eager.io.file.read(np.frombuffer(str(path).encode(), np.uint8))
print(bytes(read).decode())  # eight by

# ---- figure ----
from figures import cells

figure = {"bytes of the file": cells(read)}
