# SPDX-License-Identifier: Apache-2.0
import av
import numpy as np

from stoker import fn, pipeline_def

with av.open("disc.mp4", "w") as file:  # a made video: a disc that moves
    stream = file.add_stream("libx264", rate=25)
    stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
    y, x = np.mgrid[:96, :160]
    for i in range(50):
        disc = (x - 20 - 2 * i) ** 2 + (y - 48) ** 2 < 200
        pixels = np.where(disc[..., None], [230, 60, 120], [40, 60, 60]).astype(np.uint8)
        file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
    file.mux(stream.encode(None))


@pipeline_def(batch_size=2, num_threads=2)
def clips():
    return fn.readers.video_resize(filenames="disc.mp4", sequence_length=4, stride=6, size=64)


pipe = clips()
(video,) = pipe.run()
print(video[0].shape)  # (4, 64, 64, 3)

# ---- figure ----
figure = {"four frames, 64 pixels high": np.hstack(video[0])}
