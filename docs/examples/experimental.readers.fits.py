# SPDX-License-Identifier: Apache-2.0
import numpy as np
from astropy.io import fits

from stoker import fn, pipeline_def

sky = np.random.default_rng(0).poisson(20, (64, 96)).astype(np.uint16)
fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(sky)]).writeto("sky.fits")


@pipeline_def(batch_size=1, num_threads=1)
def images():
    return fn.experimental.readers.fits(files=["sky.fits"])  # the first image after the primary one


pipe = images()
(found,) = pipe.run()
print(found)  # Batch(1 x (64, 96), uint16)
print(np.array_equal(found[0], sky))  # True
