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
        pixels = np.where(disc[..., None], [40, 120, 230], [60, 60, 40]).astype(np.uint8)
        file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
    file.mux(stream.encode(None))


@pipeline_def(batch_size=1, num_threads=2)
def clips():
    return fn.experimental.readers.video(
        filenames="disc.mp4", sequence_length=4, uniform_sample=True, enable_frame_num="sequence"
    )


pipe = clips()
video, numbers = pipe.run()
print(np.asarray(numbers[0]))  # [ 0 16 33 49]

# ---- figure ----
figure = {"four frames from end to end": np.hstack(video[0])}
