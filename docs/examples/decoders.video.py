# SPDX-License-Identifier: Apache-2.0
import av
import numpy as np

from stoker import eager

with av.open("disc.mp4", "w") as file:  # a made video: a disc that moves
    stream = file.add_stream("libx264", rate=25)
    stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
    y, x = np.mgrid[:96, :160]
    for i in range(50):
        disc = (x - 20 - 2 * i) ** 2 + (y - 48) ** 2 < 200
        pixels = np.where(disc[..., None], [120, 230, 40], [60, 40, 60]).astype(np.uint8)
        file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
    file.mux(stream.encode(None))
data = np.fromfile("disc.mp4", np.uint8)

print(eager.decoders.video(data).shape)  # (50, 96, 160, 3)
chosen = eager.decoders.video(data, frames=[40, 0, 20])
clip = eager.decoders.video(data, start_frame=30, sequence_length=3, stride=9, pad_mode="edge")
print(chosen.shape, clip.shape)  # (3, 96, 160, 3) (3, 96, 160, 3)

# ---- figure ----
figure = {"frames 40, 0 and 20": np.hstack(chosen), "frames 30, 39 and 48": np.hstack(clip)}
