# SPDX-License-Identifier: Apache-2.0
from stoker import eager, types

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
calm = eager.water(image, interp_type=types.INTERP_LINEAR)
rough = eager.water(image, ampl_x=25.0, freq_x=0.1, interp_type=types.INTERP_LINEAR)

# ---- figure ----
figure = {"image": image, "water": calm, "ampl_x=25.0, freq_x=0.1": rough}
