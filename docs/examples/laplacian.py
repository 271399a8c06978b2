# SPDX-License-Identifier: Apache-2.0
from stoker import eager, types

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
edges = eager.laplacian(image, window_size=5, normalized_kernel=True, dtype=types.FLOAT)
sharp = eager.cast(image - 2 * edges, dtype=types.UINT8)
print(edges.dtype, edges.min() < 0)  # float32 True

# ---- figure ----
figure = {"image": image, "edges, 128 + 4 edges": 128 + 4 * edges, "image - 2 edges": sharp}
