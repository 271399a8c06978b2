# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, fn, pipeline_def, types

image = eager.resize(eager.imread("astronaut.jpg"), size=(160, 160))
video = np.stack([image] * 6)  # uint8 (6, 160, 160, 3), FHWC


@pipeline_def(batch_size=1, num_threads=1)
def turning():
    angles = types.Constant(np.linspace(0, 150, 6, dtype=np.float32))
    frames = types.Constant(video, layout="FHWC")
    return fn.rotate(frames, angle=fn.per_frame(angles), keep_size=True, fill_value=0)


pipe = turning()
(out,) = pipe.run()
print(out)  # Batch(1 x (6, 160, 160, 3), uint8, FHWC)

# ---- figure ----
figure = {f"frame {i}": frame for i, frame in enumerate(out[0])}
