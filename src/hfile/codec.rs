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
use libdeflater::{CompressionLvl, Decompressor};
use std::cell::RefCell;

/// zstd-jni's default level, which is also HBase's.
const ZSTD_LEVEL: i32 = 3;
/// With libdeflate this level comes nearest to the sizes of Java's default level (tests/hfile_golden.rs).
const GZIP_LEVEL: i32 = 5;
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

/// One gzip member. The room is for its size and no more, so that a longer one is seen.
fn gunzip(payload: &[u8], size: usize) -> Parsed<Vec<u8>> {
    let mut out = vec![0; size];
    let filled = GZIP
        .with_borrow_mut(|decoder| decoder.gzip_decompress(payload, &mut out))
        .map_err(|error| Damage::new(format!("gzip: {error}")))?;
    if filled == size { Ok(out) } else { Err(Damage::new("a gzip block is not as long as its header says")) }
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
    static GZIP: RefCell<Decompressor> = RefCell::new(Decompressor::new());
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
pub(crate) struct Compressor {
    method: Method,
    /// Room for one compressed chunk.
    room: Vec<u8>,
}

enum Method {
    None,
    Gz(libdeflater::Compressor),
    Snappy(Box<snap::raw::Encoder>),
    Lz4,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub(crate) fn new(codec: Compression) -> std::io::Result<Compressor> {
        let method = match codec {
            Compression::None => Method::None,
            Compression::Gz => Method::Gz(libdeflater::Compressor::new(
                CompressionLvl::new(GZIP_LEVEL).map_err(|_| std::io::Error::other("no such level of gzip"))?,
            )),
            Compression::Snappy => Method::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Lz4 => Method::Lz4,
            Compression::Zstd => Method::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
        };
        Ok(Compressor { method, room: Vec::new() })
    }

    /// Appends `payload` compressed.
    pub(crate) fn append(&mut self, payload: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        match self.method {
            Method::None => out.extend_from_slice(payload),
            Method::Gz(_) => out.extend_from_slice(self.compress(payload)?),
            Method::Snappy(_) | Method::Lz4 | Method::Zstd(_) => {
                out.put_u32(payload.len() as u32);
                for chunk in payload.chunks(CHUNK_MAX) {
                    let compressed = self.compress(chunk)?;
                    out.put_u32(compressed.len() as u32);
                    out.extend_from_slice(compressed);
                }
            }
        }
        Ok(())
    }

    /// `chunk` compressed, in the room that the next one will take.
    fn compress(&mut self, chunk: &[u8]) -> std::io::Result<&[u8]> {
        let most = match &mut self.method {
            Method::None => chunk.len(),
            Method::Gz(encoder) => encoder.gzip_compress_bound(chunk.len()),
            Method::Snappy(_) => snap::raw::max_compress_len(chunk.len()),
            Method::Lz4 => lz4_flex::block::get_maximum_output_size(chunk.len()),
            Method::Zstd(_) => zstd::zstd_safe::compress_bound(chunk.len()),
        };
        if self.room.len() < most {
            self.room.resize(most, 0);
        }
        let room = &mut self.room[..];
        let len = match &mut self.method {
            Method::None => {
                let (front, _) = room.split_at_mut(chunk.len());
                front.copy_from_slice(chunk);
                chunk.len()
            }
            Method::Gz(encoder) => encoder.gzip_compress(chunk, room).map_err(std::io::Error::other)?,
            Method::Snappy(encoder) => encoder.compress(chunk, room).map_err(std::io::Error::other)?,
            Method::Lz4 => lz4_flex::block::compress_into(chunk, room).map_err(std::io::Error::other)?,
            Method::Zstd(encoder) => encoder.compress_to_buffer(chunk, room)?,
        };
        Ok(self.room.get(..len).unwrap_or(&[]))
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
