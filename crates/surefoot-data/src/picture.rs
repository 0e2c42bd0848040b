//! Pictures: PNG and JPEG files decoded, made grey or colour, and resized.

use std::io::Cursor;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Pictures of more pixels are not for training; a damaged file may claim any number.
const MOST_PIXELS: usize = 1 << 26;

/// A decoded picture, its values 0 to 1 and its channels last.
#[derive(Debug, PartialEq)]
pub(crate) struct Picture {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    pub(crate) values: Vec<f32>,
}

impl Picture {
    /// Decodes a PNG or JPEG file, by its first bytes, to one channel (grey) or three (colour).
    ///
    /// # Errors
    ///
    /// Describes the damage.
    pub(crate) fn decode(bytes: &[u8], channels: usize) -> Result<Picture, String> {
        let pixels = if bytes.starts_with(b"\x89PNG") {
            png(bytes)?
        } else if bytes.starts_with(&[0xff, 0xd8]) {
            jpeg(bytes)?
        } else {
            return Err("it does not begin as one".into());
        };
        Ok(pixels.picture(channels))
    }

    /// The picture in another size, by a triangle filter as wide as a new pixel: what Pillow calls
    /// bilinear. Enlarging interpolates and shrinking averages.
    pub(crate) fn resized(self, height: usize, width: usize) -> Picture {
        if (height, width) == (self.height, self.width) {
            return self;
        }
        let line = self.width * self.channels;
        let mut lines = vec![0.0; height * line];
        for (filter, row) in filters(self.height, height).zip(lines.chunks_mut(line)) {
            for (from, weight) in filter {
                let source = &self.values[from * line..][..line];
                for (value, source) in row.iter_mut().zip(source) {
                    *value += weight * source;
                }
            }
        }
        let mut values = vec![0.0; height * width * self.channels];
        let filters: Vec<_> = filters(self.width, width).map(Vec::from_iter).collect();
        for (row, source) in values.chunks_mut(width * self.channels).zip(lines.chunks(line)) {
            for (pixel, filter) in row.chunks_mut(self.channels).zip(&filters) {
                for &(from, weight) in filter {
                    let source = &source[from * self.channels..];
                    for (value, source) in pixel.iter_mut().zip(source) {
                        *value += weight * source;
                    }
                }
            }
        }
        Picture { height, width, channels: self.channels, values }
    }
}

/// For each of `new` pixels in a line, the `old` pixels that it covers, with their weights.
fn filters(old: usize, new: usize) -> impl Iterator<Item = impl Iterator<Item = (usize, f32)>> {
    let scale = old as f64 / new as f64;
    let reach = scale.max(1.0);
    (0..new).map(move |to| {
        let center = (to as f64 + 0.5) * scale;
        let first = (center - reach).floor().max(0.0) as usize;
        let last = ((center + reach).ceil() as usize).min(old);
        let weight = move |from: usize| {
            let distance = (from as f64 + 0.5 - center).abs();
            (1.0 - distance / reach).max(0.0)
        };
        let sum: f64 = (first..last).map(weight).sum();
        (first..last).map(move |from| (from, (weight(from) / sum) as f32))
    })
}

/// Pixels of 1 (grey), 2 (grey and alpha), 3 (colour) or 4 (colour and alpha) bytes.
struct Pixels {
    height: usize,
    width: usize,
    depth: usize,
    bytes: Vec<u8>,
}

impl Pixels {
    /// Alpha is ignored, and colours become grey by the weights of ITU-R 601, as in Pillow.
    fn picture(self, channels: usize) -> Picture {
        let mut values = Vec::with_capacity(self.height * self.width * channels);
        for pixel in self.bytes.chunks_exact(self.depth) {
            match (pixel, channels) {
                ([grey] | [grey, _], _) => {
                    values.extend(std::iter::repeat_n(f32::from(*grey) / 255.0, channels));
                }
                ([red, green, blue, ..], 1) => {
                    let [red, green, blue] = [*red, *green, *blue].map(u32::from);
                    let grey = 299 * red + 587 * green + 114 * blue;
                    values.push(grey as f32 / 255_000.0);
                }
                (colours, _) => {
                    values.extend(colours[..3].iter().map(|&value| f32::from(value) / 255.0));
                }
            }
        }
        Picture { height: self.height, width: self.width, channels, values }
    }
}

/// Refuses a picture without pixels and one of too many.
fn check(width: usize, height: usize) -> Result<(), String> {
    match width.checked_mul(height) {
        Some(1..=MOST_PIXELS) => Ok(()),
        _ => {
            Err(format!("it claims {width} x {height} pixels, and 1 to {MOST_PIXELS} are allowed"))
        }
    }
}

fn png(bytes: &[u8]) -> Result<Pixels, String> {
    let mut decoder = ::png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(::png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    check(width, height)?;
    let depth = reader.output_color_type().0.samples();
    let size = reader
        .output_buffer_size()
        .filter(|&size| size == width * height * depth)
        .ok_or("its pixels have an unknown size")?;
    let mut pixels = vec![0; size];
    reader.next_frame(&mut pixels).map_err(|error| error.to_string())?;
    Ok(Pixels { height, width, depth, bytes: pixels })
}

fn jpeg(bytes: &[u8]) -> Result<Pixels, String> {
    // Without vector instructions, so that the values are the same on every machine.
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_use_unsafe(false)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| error.to_string())?;
    let info = decoder.info().ok_or("it has no header")?;
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    check(width, height)?;
    let pixels = decoder.decode().map_err(|error| error.to_string())?;
    let depth = pixels.len() / (width * height);
    if pixels.len() != width * height * depth || !matches!(depth, 1 | 3) {
        return Err("its colours are of an unknown kind".into());
    }
    Ok(Pixels { height, width, depth, bytes: pixels })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Pillow's JPEG of 8 by 8 pixels of colour (200, 100, 50).
    #[rustfmt::skip]
    pub(crate) const COLOUR: &[u8] = b"\
        \xff\xd8\xff\xe0\x00\x10\x4a\x46\x49\x46\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xdb\
        \x00\x43\x00\x10\x0b\x0c\x0e\x0c\x0a\x10\x0e\x0d\x0e\x12\x11\x10\x13\x18\x28\x1a\x18\x16\
        \x16\x18\x31\x23\x25\x1d\x28\x3a\x33\x3d\x3c\x39\x33\x38\x37\x40\x48\x5c\x4e\x40\x44\x57\
        \x45\x37\x38\x50\x6d\x51\x57\x5f\x62\x67\x68\x67\x3e\x4d\x71\x79\x70\x64\x78\x5c\x65\x67\
        \x63\xff\xdb\x00\x43\x01\x11\x12\x12\x18\x15\x18\x2f\x1a\x1a\x2f\x63\x42\x38\x42\x63\x63\
        \x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\
        \x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\x63\
        \x63\x63\x63\x63\xff\xc0\x00\x11\x08\x00\x08\x00\x08\x03\x01\x11\x00\x02\x11\x01\x03\x11\
        \x01\xff\xc4\x00\x14\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
        \x02\xff\xc4\x00\x14\x10\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
        \x00\xff\xc4\x00\x14\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
        \x05\xff\xc4\x00\x14\x11\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
        \x00\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00\x22\xcc\xbf\xff\xd9\
        ";

    /// Pillow's JPEG of 8 by 8 pixels of grey 100.
    #[rustfmt::skip]
    const GREY: &[u8] = b"\
        \xff\xd8\xff\xe0\x00\x10\x4a\x46\x49\x46\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xdb\
        \x00\x43\x00\x10\x0b\x0c\x0e\x0c\x0a\x10\x0e\x0d\x0e\x12\x11\x10\x13\x18\x28\x1a\x18\x16\
        \x16\x18\x31\x23\x25\x1d\x28\x3a\x33\x3d\x3c\x39\x33\x38\x37\x40\x48\x5c\x4e\x40\x44\x57\
        \x45\x37\x38\x50\x6d\x51\x57\x5f\x62\x67\x68\x67\x3e\x4d\x71\x79\x70\x64\x78\x5c\x65\x67\
        \x63\xff\xc0\x00\x0b\x08\x00\x08\x00\x08\x01\x01\x11\x00\xff\xc4\x00\x14\x00\x01\x00\x00\
        \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\xff\xc4\x00\x14\x10\x01\x00\x00\
        \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xda\x00\x08\x01\x01\x00\x00\
        \x3f\x00\x0b\xff\xd9\
        ";

    /// A PNG of 8 bits a channel.
    pub(crate) fn png(width: u32, height: u32, kind: ::png::ColorType, pixels: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = ::png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(kind);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(pixels).unwrap();
        writer.finish().unwrap();
        bytes
    }

    fn ramp(height: usize, width: usize, channels: usize) -> Picture {
        Picture {
            height,
            width,
            channels,
            values: (0..height * width * channels).map(|i| i as f32).collect(),
        }
    }

    fn close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }

    #[test]
    fn every_kind_of_png_becomes_grey_or_colour() {
        use ::png::ColorType;
        let grey = png(2, 1, ColorType::Grayscale, &[0, 255]);
        close(&Picture::decode(&grey, 1).unwrap().values, &[0.0, 1.0]);
        let colour = Picture::decode(&grey, 3).unwrap();
        close(&colour.values, &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        let clear = png(1, 1, ColorType::GrayscaleAlpha, &[51, 0]);
        close(&Picture::decode(&clear, 1).unwrap().values, &[0.2]);
        let colour = png(1, 1, ColorType::Rgb, &[255, 51, 0]);
        close(&Picture::decode(&colour, 3).unwrap().values, &[1.0, 0.2, 0.0]);
        close(&Picture::decode(&colour, 1).unwrap().values, &[0.299 + 0.2 * 0.587]);
        let clear = png(1, 1, ColorType::Rgba, &[255, 51, 0, 7]);
        close(&Picture::decode(&clear, 3).unwrap().values, &[1.0, 0.2, 0.0]);
    }

    #[test]
    fn jpegs_of_colour_and_of_grey_are_read() {
        let colour = Picture::decode(COLOUR, 3).unwrap();
        assert_eq!((colour.height, colour.width), (8, 8));
        for pixel in colour.values.chunks(3) {
            for (found, expected) in pixel.iter().zip([200.0, 100.0, 50.0]) {
                assert!((found * 255.0 - expected).abs() < 6.0, "{pixel:?}");
            }
        }
        let grey = Picture::decode(GREY, 1).unwrap();
        assert!(grey.values.iter().all(|value| (value * 255.0 - 100.0).abs() < 4.0));
    }

    /// `Image.fromarray(ramp).resize((3, 2), Image.BILINEAR)` of Pillow, and the first and last
    /// values of a larger one.
    #[test]
    fn resizing_agrees_with_pillow() {
        let small = ramp(4, 5, 1).resized(2, 3);
        close(&small.values, &[4.0, 5.571_43, 7.142_86, 11.857_14, 13.428_57, 15.0]);
        let large = ramp(4, 5, 1).resized(6, 7).values;
        close(&large[..4], &[0.0, 0.571_43, 1.285_71, 2.0]);
        close(&large[38..], &[17.0, 17.714_29, 18.428_57, 19.0]);
    }

    #[test]
    fn channels_are_resized_apart() {
        let both = ramp(3, 3, 2).resized(2, 5);
        let first = Picture {
            channels: 1,
            values: (0..9).map(|i| (2 * i) as f32).collect(),
            ..ramp(3, 3, 1)
        };
        let every_second: Vec<f32> = both.values.iter().step_by(2).copied().collect();
        close(&every_second, &first.resized(2, 5).values);
    }

    #[test]
    fn the_same_size_is_the_same_picture() {
        assert_eq!(ramp(3, 4, 3).resized(3, 4), ramp(3, 4, 3));
    }

    #[test]
    fn a_picture_that_claims_too_much_is_refused() {
        let mut bytes = png(1, 1, ::png::ColorType::Rgb, &[1, 2, 3]);
        bytes[16..24].copy_from_slice(&[0x7f; 8]);
        assert!(Picture::decode(&bytes, 3).is_err());
        assert!(check(1 << 14, 1 << 14).unwrap_err().contains("pixels"));
        assert!(check(0, 1).is_err());
    }

    #[test]
    fn cut_short_is_an_error() {
        let whole = png(4, 4, ::png::ColorType::Grayscale, &[7; 16]);
        assert!(Picture::decode(&whole[..whole.len() - 20], 1).is_err());
        assert!(Picture::decode(&COLOUR[..COLOUR.len() - 30], 3).is_err());
        assert!(Picture::decode(b"GIF89a", 1).is_err());
    }
}
