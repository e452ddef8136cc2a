"""The reference's examples, one for every operator: expressions that use the names of `INPUTS`."""

from __future__ import annotations

__all__ = ["EXAMPLES", "INPUTS", "PICTURES"]

INPUTS = {
    "image": "the picture, `(160, 240, 3)` uint8",
    "jpeg": "its encoded bytes",
    "boxes": "two boxes in it, as left, top, right and bottom from 0 to 1: the balloon and a hill",
    "labels": "the numbers of what is in them, 1 and 2",
    "mosaic": "what a sensor behind a Bayer filter sees of it, `(160, 240)` uint8",
    "mask": "`(160, 240)` int32: where the image shows which of them, 0 elsewhere",
    "points": "three places in it, as x and y in pixels, float32",
    "mapx": "where a wave takes each pixel from, `(160, 240)` float32: x in pixels",
    "mapy": "the same: y",
    "numbers": "`[3, 1, 4, 1, 5]`, float32",
    "film": "the picture moving past in twelve frames, as the bytes of a GIF file, which lies in the folder too",
    "sound": "a second of a chord, float32 at 8 kHz",
    "wav": "its encoded bytes",
    "folder": "the path of a folder with a folder of files for each class, and with containers of the same files",
}
"""Names that the examples use, and their descriptions in the reference."""

PICTURES: dict[str, str] = {
    "brightness": "fn.brightness(image, brightness=1.3, brightness_shift=0.1)",
    "brightness_contrast": "fn.brightness_contrast(image, brightness=1.2, contrast=1.5)",
    "cache": 'fn.cache(fn.decoders.image(fn.readers.file(file_root=folder)[0]), bytes="1GB")',
    "cat": 'fn.cat(image, fn.flip(image), axis_name="W")',
    "clahe": "fn.clahe(image, clip_limit=4.0, tiles_x=6, tiles_y=4)",
    "color_space_conversion": "fn.color_space_conversion(image, image_type=types.RGB, output_type=types.YCbCr)",
    "color_twist": "fn.color_twist(image, hue=60.0, saturation=1.5, contrast=1.2, brightness=0.9)",
    "contrast": "fn.contrast(image, contrast=1.8, contrast_center=110.0)",
    "copy": "fn.copy(image)",
    "crop": "fn.crop(image, crop=[112, 112], crop_pos_x=0.8, crop_pos_y=0.2)",
    "crop_mirror_normalize": (
        "fn.crop_mirror_normalize(image, crop=[112, 112], mirror=1, dtype=types.FLOAT, "
        "mean=[124.0, 116.0, 104.0], std=[58.0, 57.0, 57.0])"
    ),
    "debayer": "fn.debayer(mosaic, blue_position=[0, 0])",
    "decoders.image": "fn.decoders.image(jpeg, output_type=types.GRAY)",
    "decoders.image_crop": "fn.decoders.image_crop(jpeg, crop=[112, 112], crop_pos_x=0.8)",
    "decoders.image_random_crop": "fn.decoders.image_random_crop(jpeg, random_area=[0.3, 0.6])",
    "decoders.image_slice": (
        'fn.decoders.image_slice(jpeg, rel_start=[0.5, 0.1], rel_end=[0.9, 0.7], axis_names="WH")'
    ),
    "equalize": "fn.equalize(image)",
    "erase": (
        'fn.erase(image, anchor=[30.0, 20.0, 90.0, 140.0], shape=[40.0, 50.0, 40.0, 60.0], axis_names="HW", '
        "fill_value=[128.0])"
    ),
    "experimental.dilate": "fn.experimental.dilate(image, mask_size=[5, 5])",
    "experimental.erode": "fn.experimental.erode(image, mask_size=[5, 5])",
    "experimental.median_blur": "fn.experimental.median_blur(image, window_size=[7, 7])",
    "experimental.remap": "fn.experimental.remap(image, mapx, mapy)",
    "experimental.resize": "fn.experimental.resize(image.gpu(), resize_shorter=80.0)",
    "experimental.warp_perspective": (
        "fn.experimental.warp_perspective(image, matrix=[1.0, 0.3, -20.0, 0.0, 1.2, -10.0, 0.0, 0.003, 1.0])"
    ),
    "filter": ("fn.filter(image, types.Constant(np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)))"),
    "flip": "fn.flip(image, horizontal=1, vertical=1)",
    "gaussian_blur": "fn.gaussian_blur(image, sigma=2.5)",
    "grid_mask": "fn.grid_mask(image, tile=32, ratio=0.4, angle=0.3)",
    "hsv": "fn.hsv(image, hue=120.0, saturation=0.8, value=1.1)",
    "hue": "fn.hue(image, hue=90.0)",
    "jitter": "fn.jitter(image, nDegree=6)",
    "jpeg_compression_distortion": "fn.jpeg_compression_distortion(image, quality=8)",
    "laplacian": "fn.laplacian(image, window_size=3, scale=3.0)",
    "lookup_table": "fn.lookup_table(image, keys=list(range(256)), values=list(range(255, -1, -1)), dtype=types.UINT8)",
    "multi_paste": (
        "fn.multi_paste(image, fn.resize(image, size=[80, 120]), out_anchors=[[0, 0], [70, 10]], "
        "output_size=[160, 240])"
    ),
    "noise.gaussian": "fn.noise.gaussian(image, stddev=25.0)",
    "noise.salt_and_pepper": "fn.noise.salt_and_pepper(image, prob=0.05)",
    "noise.shot": "fn.noise.shot(image, factor=15.0)",
    "normalize": 'fn.normalize(image, axis_names="HW")',
    "pad": 'fn.pad(image, axis_names="HW", shape=[200, 280], fill_value=90.0)',
    "paste": "fn.paste(image, ratio=1.4, paste_x=0.2, paste_y=0.7, fill_value=[60, 80, 120])",
    "permute_batch": "fn.permute_batch(image, indices=fn.batch_permutation(no_fixed_points=True))",
    "python_function": "fn.python_function(image, function=lambda pixels: 255 - pixels)",
    "random_resized_crop": "fn.random_resized_crop(image, size=[112, 112], random_area=[0.3, 0.6])",
    "resize": "fn.resize(image, size=[80, 200], interp_type=types.INTERP_CUBIC)",
    "resize_crop_mirror": "fn.resize_crop_mirror(image, resize_shorter=120.0, crop=[112, 112], mirror=1)",
    "rotate": "fn.rotate(image, angle=25.0, fill_value=0)",
    "saturation": "fn.saturation(image, saturation=0.3)",
    "slice": 'fn.slice(image, rel_start=[0.5, 0.1], rel_end=[0.9, 0.7], axis_names="WH")',
    "sphere": "fn.sphere(image)",
    "ssd_random_crop": "fn.ssd_random_crop(image, boxes, labels, num_attempts=10, seed=4)",
    "tensor_resize": 'fn.tensor_resize(image, axis_names="HW", scales=[1.25, 0.5])',
    "torch_python_function": ("fn.torch_python_function(image, function=lambda pixels: pixels.flip(-1))"),
    "transpose": "fn.transpose(image, perm=[1, 0, 2])",
    "warp_affine": "fn.warp_affine(image, matrix=[1.0, 0.3, 0.0, 0.0, 1.2, -10.0], fill_value=0)",
    "water": "fn.water(image, ampl_x=6.0, ampl_y=4.0, freq_x=0.08, freq_y=0.06)",
}
"""Examples whose result is an image, which the reference shows below the code."""

EXAMPLES: dict[str, str] = PICTURES | {
    "audio_resample": "fn.audio_resample(sound, in_rate=8000.0, out_rate=16000.0)",
    "batch_permutation": "fn.batch_permutation(no_fixed_points=True)",
    "bb_flip": "fn.bb_flip(boxes, ltrb=True, horizontal=1)",
    "bbox_paste": "fn.bbox_paste(boxes, ltrb=True, ratio=1.4, paste_x=0.2, paste_y=0.7)",
    "bbox_rotate": (
        'fn.bbox_rotate(boxes, labels, angle=25.0, input_shape=image.shape(), bbox_layout="xyXY", shape_layout="HWC")'
    ),
    "box_encoder": "fn.box_encoder(boxes, labels, anchors=[0.5, 0.1, 0.9, 0.7, 0.0, 0.3, 0.5, 0.7])",
    "cast": "fn.cast(image, dtype=types.FLOAT)",
    "cast_like": "fn.cast_like(image, numbers)",
    "constant": "fn.constant(fdata=[1.0, 2.0, 3.0, 4.0], shape=[2, 2])",
    "coord_flip": "fn.coord_flip(points, flip_x=1, center_x=120.0)",
    "coord_transform": "fn.coord_transform(points, MT=fn.transforms.rotation(angle=25.0, center=[120.0, 80.0]))",
    "decoders.audio": "fn.decoders.audio(wav, sample_rate=16000.0, downmix=True)",
    "decoders.video": "fn.decoders.video(film, start_frame=2, sequence_length=3, stride=4)",
    "decoders.numpy": 'fn.decoders.numpy(fn.io.file.read(np.frombuffer(f"{folder}/numbers.npy".encode(), np.uint8)))',
    "dl_tensor_python_function": "fn.dl_tensor_python_function(image, function=lambda batch: batch)",
    "dump_image": 'fn.dump_image(image, suffix="seen")',
    "element_extract": 'fn.element_extract(fn.reshape(image, layout="FHW"), element_map=[0, 80])',
    "expand_dims": 'fn.expand_dims(image, axes=[0], new_axis_names="F")',
    "decoders.inflate": 'fn.decoders.inflate(np.frombuffer(b"Phello", np.uint8), shape=[5])',
    "experimental.inputs.video": 'fn.experimental.inputs.video(name="camera", sequence_length=3)',
    "experimental.readers.fits": 'fn.experimental.readers.fits(files=[f"{folder}/stars.fits"], hdu_indices=[1])',
    "experimental.readers.video": (
        'fn.experimental.readers.video(filenames=[f"{folder}/film.gif"], sequence_length=3, enable_timestamps=True)'
    ),
    "external_source": "fn.external_source(source=lambda: [np.zeros(3), np.ones(3)])",
    "full": "fn.full(7, shape=[2, 3])",
    "full_like": "fn.full_like(image, 7)",
    "get_property": 'fn.get_property(image, key="layout")',
    "io.file.read": 'fn.io.file.read(np.frombuffer(f"{folder}/class0/image.jpg".encode(), np.uint8))',
    "mel_filter_bank": "fn.mel_filter_bank(fn.spectrogram(sound), sample_rate=8000.0, nfilter=40)",
    "mfcc": ("fn.mfcc(fn.to_decibels(fn.mel_filter_bank(fn.spectrogram(sound), sample_rate=8000.0)), n_mfcc=13)"),
    "nonsilent_region": "fn.nonsilent_region(sound, window_length=256)",
    "one_hot": "fn.one_hot(labels, num_classes=4)",
    "ones": "fn.ones(shape=[2, 3])",
    "optical_flow": (
        'fn.optical_flow(fn.stack(image, fn.rotate(image, angle=2.0, keep_size=True), axis_name="F").gpu())'
    ),
    "ones_like": "fn.ones_like(image, dtype=types.FLOAT)",
    "peek_image_shape": "fn.peek_image_shape(jpeg)",
    "per_frame": "fn.per_frame(numbers)",
    "power_spectrum": "fn.power_spectrum(sound)",
    "preemphasis_filter": "fn.preemphasis_filter(sound, preemph_coeff=0.9)",
    "random.beta": "fn.random.beta(alpha=2.0, beta=5.0)",
    "random.choice": "fn.random.choice(numbers, shape=[2])",
    "random.coin_flip": "fn.random.coin_flip(probability=0.3)",
    "random.normal": "fn.random.normal(mean=10.0, stddev=2.0, shape=[3])",
    "random.uniform": "fn.random.uniform(range=[-15.0, 15.0])",
    "random_bbox_crop": (
        'fn.random_bbox_crop(boxes, labels, bbox_layout="xyXY", thresholds=[0.1, 0.5], scaling=[0.3, 1.0])'
    ),
    "random_crop_generator": "fn.random_crop_generator(image.shape(), random_area=[0.3, 0.6])",
    "readers.caffe": 'fn.readers.caffe(path=f"{folder}/caffe")',
    "readers.caffe2": 'fn.readers.caffe2(path=f"{folder}/caffe2", label_type=0)',
    "readers.coco": 'fn.readers.coco(file_root=folder, annotations_file=f"{folder}/annotations.json", ratio=True)',
    "readers.file": "fn.readers.file(file_root=folder, random_shuffle=True)",
    "readers.numpy": "fn.readers.numpy(file_root=folder, roi_shape=[2])",
    "readers.sequence": "fn.readers.sequence(file_root=folder, sequence_length=1)",
    "readers.mxnet": 'fn.readers.mxnet(path=f"{folder}/images.rec")',
    "readers.mixture": (
        "fn.readers.mixture(sources=[WeightedReader(fn.readers.file, repeat=2, file_root=folder)], random_shuffle=True)"
    ),
    "readers.stream": "fn.readers.stream(dataset=[(1, 2.5), (3, 4.5)])",
    "readers.mds": 'fn.readers.mds(path=f"{folder}/mds", columns=["image", "label"])["label"]',
    "readers.table": 'fn.readers.table(paths=[f"{folder}/images.parquet"], columns=["image", "label"])["label"]',
    "readers.nemo_asr": 'fn.readers.nemo_asr(manifest_filepaths=f"{folder}/manifest.json", sample_rate=16000.0)',
    "readers.dataset": "fn.readers.dataset(dataset=[(1, 2.5), (3, 4.5)])",
    "readers.tfrecord": (
        'fn.readers.tfrecord(path=f"{folder}/images.tfrecord", features={'
        '"image": tfrecord.FixedLenFeature((), tfrecord.string, "")})["image"]'
    ),
    "readers.video": 'fn.readers.video(filenames=[f"{folder}/film.gif"], sequence_length=3, labels=[1])',
    "readers.video_resize": (
        'fn.readers.video_resize(filenames=[f"{folder}/film.gif"], sequence_length=3, resize_shorter=40.0)'
    ),
    "readers.webdataset": 'fn.readers.webdataset(paths=f"{folder}/images.tar", ext=["jpg", "cls"])',
    "reductions.max": "fn.reductions.max(numbers)",
    "reductions.mean": 'fn.reductions.mean(image, axis_names="HW")',
    "reductions.mean_square": "fn.reductions.mean_square(numbers)",
    "reductions.min": "fn.reductions.min(numbers)",
    "reductions.rms": "fn.reductions.rms(numbers)",
    "reductions.std_dev": "fn.reductions.std_dev(numbers, fn.reductions.mean(numbers))",
    "reductions.sum": 'fn.reductions.sum(image, axis_names="C", keep_dims=True)',
    "reductions.variance": "fn.reductions.variance(numbers, fn.reductions.mean(numbers), ddof=1)",
    "reinterpret": "fn.reinterpret(numbers, dtype=types.UINT8)",
    "reshape": 'fn.reshape(image, shape=[-1, 3], layout="XC")',
    "roi_random_crop": "fn.roi_random_crop(image, crop_shape=[80, 80], roi_start=[25, 139], roi_end=[102, 193])",
    "segmentation.random_mask_pixel": "fn.segmentation.random_mask_pixel(mask, foreground=1)",
    "segmentation.random_object_bbox": (
        'fn.segmentation.random_object_bbox(mask, format="start_end", foreground_prob=0.9)'
    ),
    "segmentation.select_masks": (
        "fn.segmentation.select_masks(types.Constant(np.int32([1])), types.Constant(np.int32([[0, 0, 2], [1, 2, 4]])), "
        "types.Constant(np.float32([[0, 0], [1, 0], [5, 5], [6, 7]])))"
    ),
    "sequence_rearrange": 'fn.sequence_rearrange(fn.reshape(image, layout="FHW"), new_order=[2, 0, 0])',
    "shapes": "fn.shapes(image)",
    "spectrogram": "fn.spectrogram(sound, window_length=256, window_step=128)",
    "squeeze": "fn.squeeze(fn.expand_dims(image, axes=[0]), axes=[0])",
    "stack": "fn.stack(image, fn.flip(image))",
    "to_decibels": "fn.to_decibels(fn.spectrogram(sound), cutoff_db=-80.0)",
    "transforms.combine": (
        "fn.transforms.combine(fn.transforms.scale(scale=[2.0, 2.0]), fn.transforms.rotation(angle=25.0))"
    ),
    "transforms.crop": "fn.transforms.crop(from_end=[240.0, 160.0], to_end=[1.0, 1.0])",
    "transforms.rotation": "fn.transforms.rotation(angle=25.0, center=[120.0, 80.0])",
    "transforms.scale": "fn.transforms.scale(scale=[2.0, 0.5])",
    "transforms.shear": "fn.transforms.shear(angles=[10.0, 0.0])",
    "transforms.translation": "fn.transforms.translation(offset=[30.0, -10.0])",
    "zeros": "fn.zeros(shape=[2, 3])",
    "zeros_like": "fn.zeros_like(image)",
}
"""The examples of all operators."""
