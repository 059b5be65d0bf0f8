//! Compression of blocks: gzip streams, and Snappy, LZ4 and Zstandard in Hadoop's block framing (hbase.md B4).
//!
//! ```text
//! framed = repeat { u32 length of what follows uncompressed | repeat { u32 compressed length | chunk } }     (big-endian)
//! ```
//!
//! Zstandard has a second, unframed form, written where Hadoop's own `ZStandardCodec` is configured: a reader tells it by the frame magic.

use super::input::{Damage, Input, Parsed};
use crate::schema::Compression;
use bytes::BufMut;
use std::cell::RefCell;
use std::io::{Read, Write};

/// zstd-jni's default level, which is also HBase's.
const ZSTD_LEVEL: i32 = 3;
/// With zlib-rs this level comes nearest to the sizes of Java's default level (tests/hfile_golden.rs).
const GZIP_LEVEL: u32 = 7;
/// Most uncompressed bytes in one chunk. Hadoop's decompressors work in buffers of 256 KiB.
const CHUNK_MAX: usize = 200 * 1024;
const ZSTD_FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// HBase's ordinal of the codec in the trailer (`Compression.Algorithm`).
pub(crate) fn codec_ordinal(codec: Compression) -> u32 {
    match codec {
        Compression::Gz => 1,
        Compression::None => 2,
        Compression::Snappy => 3,
        Compression::Lz4 => 4,
        Compression::Zstd => 6,
    }
}

/// The codec of an ordinal, or HBase's name of one that cellfs does not read.
pub(crate) fn codec_from_ordinal(ordinal: u32) -> Result<Compression, &'static str> {
    match ordinal {
        1 => Ok(Compression::Gz),
        2 => Ok(Compression::None),
        3 => Ok(Compression::Snappy),
        4 => Ok(Compression::Lz4),
        6 => Ok(Compression::Zstd),
        0 => Err("LZO"),
        5 => Err("BZIP2"),
        7 => Err("LZMA"),
        8 => Err("BROTLI"),
        _ => Err("an unknown codec"),
    }
}

/// HBase's name of the codec.
pub(crate) fn codec_name(codec: Compression) -> &'static str {
    match codec {
        Compression::None => "NONE",
        Compression::Gz => "GZ",
        Compression::Snappy => "SNAPPY",
        Compression::Lz4 => "LZ4",
        Compression::Zstd => "ZSTD",
    }
}

/// The most bytes that one compressed byte can stand for; a claim over it is damage, found before anything is allocated.
fn expansion_max(codec: Compression) -> usize {
    match codec {
        Compression::None => 1,
        Compression::Gz => 1032,
        Compression::Snappy => 22,
        Compression::Lz4 => 255,
        Compression::Zstd => 1 << 16,
    }
}

/// Decompresses a block's payload, which must give exactly `size` bytes.
pub(crate) fn decompress(codec: Compression, payload: &[u8], size: usize) -> Parsed<Vec<u8>> {
    if size > payload.len().saturating_mul(expansion_max(codec)) {
        return Err(Damage::new(format!("a block of {} bytes claims to hold {size}", payload.len())));
    }
    match codec {
        Compression::None => Ok(payload.to_vec()),
        Compression::Gz => gunzip(payload, size),
        Compression::Zstd if payload.starts_with(&ZSTD_FRAME_MAGIC) => unframed_zstd(payload, size),
        Compression::Snappy | Compression::Lz4 | Compression::Zstd => unframe(codec, payload, size),
    }
}

fn unframed_zstd(payload: &[u8], size: usize) -> Parsed<Vec<u8>> {
    if let Ok(Some(named)) = zstd::zstd_safe::get_frame_content_size(payload)
        && named != size as u64
    {
        return Err(Damage::new(format!("a zstd frame of {named} bytes stands where {size} were due")));
    }
    let mut out = vec![0; size];
    match inflate_chunk(Compression::Zstd, payload, &mut out)? {
        filled if filled == size => Ok(out),
        _ => Err(Damage::new("a block is shorter than its header says")),
    }
}

fn gunzip(payload: &[u8], size: usize) -> Parsed<Vec<u8>> {
    let mut out = Vec::with_capacity(size.min(payload.len().saturating_mul(8)));
    let mut stream = flate2::bufread::GzDecoder::new(payload).take(size as u64 + 1);
    stream.read_to_end(&mut out).map_err(|error| Damage::new(format!("gzip: {error}")))?;
    if out.len() == size { Ok(out) } else { Err(Damage::new("a gzip block is not as long as its header says")) }
}

/// Each frame names its size again, so memory is taken only for what two claims agree on.
fn unframe(codec: Compression, payload: &[u8], size: usize) -> Parsed<Vec<u8>> {
    let mut input = Input::new(payload);
    let mut out = Vec::new();
    while !input.is_empty() {
        let frame_end = out.len().saturating_add(input.length()?);
        if frame_end > size {
            return Err(Damage::new("a compressed frame is longer than its block"));
        }
        let mut filled = out.len();
        out.resize(frame_end, 0);
        while filled < frame_end {
            let length = input.length()?;
            let chunk = input.take(length)?;
            let count = inflate_chunk(codec, chunk, out.get_mut(filled..).unwrap_or(&mut []))?;
            if count == 0 {
                return Err(Damage::new("a compressed chunk is empty"));
            }
            filled += count;
        }
    }
    if out.len() == size { Ok(out) } else { Err(Damage::new("a block is shorter than its header says")) }
}

thread_local! {
    static SNAPPY: RefCell<snap::raw::Decoder> = RefCell::new(snap::raw::Decoder::new());
    /// A context is over 100 KB: one for each thread, made when the first block needs it.
    static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Decompresses one chunk to the front of `room`; returns how many bytes it gave.
fn inflate_chunk(codec: Compression, chunk: &[u8], room: &mut [u8]) -> Parsed<usize> {
    match codec {
        Compression::Snappy => SNAPPY
            .with_borrow_mut(|decoder| decoder.decompress(chunk, room))
            .map_err(|error| Damage::new(format!("snappy: {error}"))),
        Compression::Lz4 => {
            lz4_flex::block::decompress_into(chunk, room).map_err(|error| Damage::new(format!("lz4: {error}")))
        }
        _ => ZSTD
            .with_borrow_mut(|slot| {
                let decoder = match slot {
                    Some(decoder) => decoder,
                    None => slot.insert(zstd::bulk::Decompressor::new()?),
                };
                decoder.decompress_to_buffer(chunk, room)
            })
            .map_err(|error| Damage::new(format!("zstd: {error}"))),
    }
}

/// A file's compressor, with its reusable state.
pub(crate) enum Compressor {
    None,
    Gz,
    Snappy(Box<snap::raw::Encoder>),
    Lz4,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub(crate) fn new(codec: Compression) -> std::io::Result<Compressor> {
        Ok(match codec {
            Compression::None => Compressor::None,
            Compression::Gz => Compressor::Gz,
            Compression::Snappy => Compressor::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Lz4 => Compressor::Lz4,
            Compression::Zstd => Compressor::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
        })
    }

    /// Appends `payload` compressed.
    pub(crate) fn append(&mut self, payload: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        match self {
            Compressor::None => out.extend_from_slice(payload),
            Compressor::Gz => {
                let mut stream = flate2::write::GzEncoder::new(&mut *out, flate2::Compression::new(GZIP_LEVEL));
                stream.write_all(payload)?;
                stream.finish()?;
            }
            Compressor::Snappy(_) | Compressor::Lz4 | Compressor::Zstd(_) => {
                out.put_u32(payload.len() as u32);
                for chunk in payload.chunks(CHUNK_MAX) {
                    let compressed = self.chunk(chunk)?;
                    out.put_u32(compressed.len() as u32);
                    out.extend_from_slice(&compressed);
                }
            }
        }
        Ok(())
    }

    fn chunk(&mut self, chunk: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Compressor::Snappy(encoder) => encoder.compress_vec(chunk).map_err(std::io::Error::other),
            Compressor::Zstd(encoder) => encoder.compress(chunk),
            Compressor::Lz4 => Ok(lz4_flex::block::compress(chunk)),
            Compressor::None | Compressor::Gz => Ok(chunk.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODECS: [Compression; 5] =
        [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd];

    #[test]
    fn payloads_of_every_size_come_back() {
        for codec in CODECS {
            for size in [0usize, 1, 33, 4096, CHUNK_MAX, CHUNK_MAX + 1, 3 * CHUNK_MAX + 7] {
                let payload: Vec<u8> = (0..size).map(|i| ((i * i) >> 7) as u8).collect();
                let mut out = Vec::new();
                Compressor::new(codec).unwrap().append(&payload, &mut out).unwrap();
                assert_eq!(decompress(codec, &out, size).unwrap(), payload, "{codec:?} {size}");
            }
        }
    }

    #[test]
    fn unframed_zstd_is_told_by_its_magic() {
        let payload = b"abc".repeat(100);
        let frame = zstd::bulk::compress(&payload, 3).unwrap();
        assert_eq!(decompress(Compression::Zstd, &frame, 300).unwrap(), payload);
        assert!(decompress(Compression::Zstd, &frame, 299).is_err());
        assert!(decompress(Compression::Zstd, &frame, 301).is_err());
    }

    #[test]
    fn damage_is_an_error() {
        for codec in [Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
            let payload = b"some text that repeats, some text that repeats".to_vec();
            let mut out = Vec::new();
            Compressor::new(codec).unwrap().append(&payload, &mut out).unwrap();
            for len in 0..out.len() {
                // gzip's own checksum is behind the data; the block's checksum covers its loss.
                if codec != Compression::Gz || len + 8 < out.len() {
                    assert!(decompress(codec, &out[..len], payload.len()).is_err(), "{codec:?} {len}");
                }
            }
            assert!(decompress(codec, &out, payload.len() + 1).is_err());
            assert!(decompress(codec, &out, payload.len() - 1).is_err());
            assert!(decompress(codec, &out, i32::MAX as usize).is_err());
        }
    }
}
