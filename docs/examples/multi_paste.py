# SPDX-License-Identifier: Apache-2.0
from stoker import eager

cat, cup = eager.imread("cat.jpg"), eager.imread("coffee.jpg")  # uint8 (300, 451, 3), (400, 600, 3)
canvas = eager.multi_paste(
    cat, cup, in_anchors=(40, 120, 100, 150), shapes=(200, 180, 200, 300),
    out_anchors=(20, 20, 80, 150), output_size=(300, 470),
)  # fmt: skip
print(canvas.shape)  # (300, 470, 3)

# ---- figure ----
figure = {"cat": cat, "cup": cup, "canvas": canvas}
