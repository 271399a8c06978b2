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
        pixels = np.where(disc[..., None], [240, 200, 60], [40, 60, 80]).astype(np.uint8)
        file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
    file.mux(stream.encode(None))


@pipeline_def(batch_size=2, num_threads=2, prefetch_queue_depth=1)
def sequences():
    return fn.experimental.inputs.video(name="video", sequence_length=16)


pipe = sequences()
pipe.feed_input("video", [np.fromfile("disc.mp4", np.uint8)])
(first,), (second,) = pipe.run(), pipe.run()
print([x.shape[0] for x in first], [x.shape[0] for x in second])  # [16, 16] [16, 2]

# ---- figure ----
figure = {"four frames of the second sequence": np.hstack(first[1][::5])}
