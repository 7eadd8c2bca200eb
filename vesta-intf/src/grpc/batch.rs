//! Message for a batch of IDs, copied in blocks.
//!
//! On the wire, packed `fixed64` is the IDs in little-endian order: on most machines the bytes of the
//! `Vec<u64>` itself. The code that prost generates writes and reads them one by one, with a buffer
//! check for each, which takes several times as long as generating them.

use prost::bytes::{Buf, BufMut};
use prost::encoding::{
    DecodeContext, WireType, decode_varint, encode_key, encode_varint, fixed64, skip_field,
};
use prost::{DecodeError, Message};

/// Number of the field `ids`.
const IDS: u32 = 1;

/// Bytes of an ID.
const ID: usize = size_of::<u64>();

/// IDs converted at a time.
const BLOCK: usize = 128;

/// Response of `GenIds`, and a message of `StreamIds`.
///
/// Encodes to the same bytes as the code that prost generates, and accepts the same input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct GenIdsResponse {
    /// Strictly ascending.
    pub ids: Vec<u64>,
}

impl Message for GenIdsResponse {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        if self.ids.is_empty() {
            return;
        }
        let blocks = Blocks::new(&self.ids);
        encode_key(IDS, WireType::LengthDelimited, buf);
        encode_varint(blocks.remaining() as u64, buf);
        buf.put(blocks); // reserves room for all of them first
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        let merged = match (tag, wire_type) {
            (IDS, WireType::LengthDelimited) => merge_packed(&mut self.ids, buf, ctx),
            (IDS, _) => fixed64::merge_repeated(wire_type, &mut self.ids, buf, ctx),
            _ => return skip_field(wire_type, tag, buf, ctx),
        };
        merged.map_err(|mut error| {
            error.push("GenIdsResponse", "ids");
            error
        })
    }

    fn encoded_len(&self) -> usize {
        fixed64::encoded_len_packed(IDS, &self.ids)
    }

    fn clear(&mut self) {
        self.ids.clear();
    }
}

/// Appends the IDs of a packed field whose key has been read.
fn merge_packed(
    ids: &mut Vec<u64>,
    buf: &mut impl Buf,
    ctx: DecodeContext,
) -> Result<(), DecodeError> {
    let length = decode_varint(buf)?;
    let mut left = match usize::try_from(length) {
        Ok(left) if left <= buf.remaining() && left.is_multiple_of(ID) => left,
        // Too long, or not whole IDs: prost reads the field again from its length, for the error.
        _ => {
            let mut head = Vec::new();
            encode_varint(length, &mut head);
            let mut again = head.chain(buf);
            return fixed64::merge_repeated(WireType::LengthDelimited, ids, &mut again, ctx);
        }
    };
    ids.reserve(left / ID);
    while left > 0 {
        let piece = buf.chunk();
        let (whole, _) = piece[..piece.len().min(left)].as_chunks::<ID>();
        let copied = size_of_val(whole);
        ids.extend(whole.iter().map(|id| u64::from_le_bytes(*id)));
        buf.advance(copied);
        left -= copied;
        // The input may be in pieces, and an ID may span two of them.
        if copied == 0 {
            ids.push(buf.get_u64_le());
            left -= ID;
        }
    }
    Ok(())
}

/// IDs as bytes in little-endian order, converted a block at a time.
struct Blocks<'a> {
    /// IDs after the block.
    ids: &'a [u64],
    block: [[u8; ID]; BLOCK],
    /// Bytes of the block still to be read: `from..to`.
    from: usize,
    to: usize,
}

impl<'a> Blocks<'a> {
    fn new(ids: &'a [u64]) -> Self {
        let mut blocks = Self {
            ids,
            block: [[0; ID]; BLOCK],
            from: 0,
            to: 0,
        };
        blocks.fill();
        blocks
    }

    fn fill(&mut self) {
        let (next, rest) = self.ids.split_at(self.ids.len().min(BLOCK));
        for (bytes, id) in self.block.iter_mut().zip(next) {
            *bytes = id.to_le_bytes();
        }
        (self.ids, self.from, self.to) = (rest, 0, size_of_val(next));
    }
}

impl Buf for Blocks<'_> {
    fn remaining(&self) -> usize {
        self.to - self.from + size_of_val(self.ids)
    }

    fn chunk(&self) -> &[u8] {
        &self.block.as_flattened()[self.from..self.to]
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining(), "{count} bytes are not left");
        while count >= self.to - self.from && self.from < self.to {
            count -= self.to - self.from;
            self.fill();
        }
        self.from += count;
    }
}

#[cfg(test)]
mod tests {
    use bolero::TypeGenerator;
    use proptest::prelude::*;

    use super::*;

    /// The message as prost derives it.
    #[derive(Clone, PartialEq, Message)]
    struct Derived {
        #[prost(fixed64, repeated, tag = "1")]
        ids: Vec<u64>,
    }

    /// Checks that both decode these bytes alike, in one piece and in pieces of `size`, and that
    /// decoding appends to the existing IDs.
    fn same_decoding(bytes: &[u8], size: usize) {
        let pieces = || {
            bytes
                .chunks(size.max(1))
                .fold(Pieces::default(), Pieces::with)
        };
        for before in [&[][..], &[7, u64::MAX]] {
            let mut derived = Derived {
                ids: before.to_vec(),
            };
            let expected = derived.merge(bytes).map_err(|error| text(&error));
            let mut whole = GenIdsResponse {
                ids: before.to_vec(),
            };
            let mut torn = whole.clone();
            assert_eq!(whole.merge(bytes).map_err(|error| text(&error)), expected);
            assert_eq!(whole.ids, derived.ids);
            assert_eq!(torn.merge(pieces()).map_err(|error| text(&error)), expected);
            assert_eq!(torn.ids, derived.ids);
        }
    }

    /// The error text, with our name for the derived message.
    fn text(error: &DecodeError) -> String {
        error.to_string().replace("Derived.", "GenIdsResponse.")
    }

    /// An input that is not contiguous.
    #[derive(Default)]
    struct Pieces<'a>(std::collections::VecDeque<&'a [u8]>);

    impl<'a> Pieces<'a> {
        fn with(mut self, piece: &'a [u8]) -> Self {
            self.0.push_back(piece);
            self
        }
    }

    impl Buf for Pieces<'_> {
        fn remaining(&self) -> usize {
            self.0.iter().map(|piece| piece.len()).sum()
        }

        fn chunk(&self) -> &[u8] {
            self.0.front().copied().unwrap_or_default()
        }

        fn advance(&mut self, mut count: usize) {
            while let Some(first) = self.0.front_mut().filter(|_| count > 0) {
                let taken = count.min(first.len());
                *first = &first[taken..];
                count -= taken;
                if first.is_empty() {
                    self.0.pop_front();
                }
            }
            assert_eq!(count, 0);
        }
    }

    /// Fields that a message may consist of.
    #[derive(Debug, Clone, TypeGenerator)]
    enum Field {
        Packed(Vec<u64>),
        Unpacked(u64),
        /// Packed, with a length that need not match the bytes.
        Broken(u16, Vec<u8>),
        /// Field 1 with another wire type.
        Varint(u64),
        Unknown(u8, u8, Vec<u8>),
        Raw(Vec<u8>),
    }

    impl Field {
        fn write(&self, out: &mut Vec<u8>) {
            match self {
                Field::Packed(ids) => fixed64::encode_packed(IDS, ids, out),
                Field::Unpacked(id) => fixed64::encode(IDS, id, out),
                Field::Broken(length, bytes) => {
                    encode_key(IDS, WireType::LengthDelimited, out);
                    encode_varint((*length).into(), out);
                    out.extend(bytes);
                }
                Field::Varint(value) => {
                    encode_key(IDS, WireType::Varint, out);
                    encode_varint(*value, out);
                }
                Field::Unknown(tag, wire, bytes) => {
                    encode_varint(u64::from(*tag) << 3 | u64::from(wire % 8), out);
                    encode_varint(bytes.len() as u64, out);
                    out.extend(bytes);
                }
                Field::Raw(bytes) => out.extend(bytes),
            }
        }
    }

    #[test]
    fn arbitrary_bytes_decode_as_in_prost() {
        bolero::check!()
            .with_iterations(20_000)
            .with_type()
            .for_each(|(fields, cut, size): &(Vec<Field>, Option<u8>, u8)| {
                let mut bytes = Vec::new();
                fields.iter().for_each(|field| field.write(&mut bytes));
                bytes.truncate(cut.map_or(bytes.len(), usize::from));
                same_decoding(&bytes, (*size).into());
            });
    }

    #[test]
    fn edge_lengths_decode_as_in_prost() {
        let ids: Vec<u64> = (0..=BLOCK as u64).map(|id| id << 40 | id).collect();
        let mut packed = Vec::new();
        fixed64::encode_packed(IDS, &ids, &mut packed);
        for end in 0..=packed.len() {
            same_decoding(&packed[..end], 13);
        }
        for length in [
            0,
            1,
            7,
            8,
            9,
            15,
            16,
            17,
            1 << 20,
            1 << 32,
            u64::MAX - 7,
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            encode_key(IDS, WireType::LengthDelimited, &mut bytes);
            encode_varint(length, &mut bytes);
            bytes.extend([1; 16]);
            same_decoding(&bytes, 3);
        }
    }

    proptest! {
        #[test]
        fn batches_encode_to_the_bytes_of_prost(
            ids in prop_oneof![
                prop::collection::vec(any::<u64>(), 0..4),
                prop::collection::vec(any::<u64>(), BLOCK - 2..BLOCK + 2),
                prop::collection::vec(any::<u64>(), 0..5 * BLOCK),
            ],
            size in 1..2000_usize,
        ) {
            let (ours, derived) = (GenIdsResponse { ids: ids.clone() }, Derived { ids });
            let bytes = derived.encode_to_vec();
            prop_assert_eq!(ours.encoded_len(), derived.encoded_len());
            prop_assert_eq!(&ours.encode_to_vec(), &bytes);
            prop_assert_eq!(ours.encode_length_delimited_to_vec(), derived.encode_length_delimited_to_vec());
            // Into a non-contiguous buffer, and into one that is too small.
            let (mut front, mut back) = (vec![0; size.min(bytes.len())], Vec::new());
            let mut torn = (&mut front[..]).chain_mut(&mut back);
            ours.encode(&mut torn).unwrap();
            prop_assert_eq!([front, back].concat(), &bytes[..]);
            let mut short = vec![0; bytes.len().saturating_sub(1)];
            prop_assert_eq!(ours.encode(&mut &mut short[..]).is_err(), !bytes.is_empty());
            same_decoding(&bytes, size);
        }

        #[test]
        fn blocks_can_be_read_in_steps_of_any_size(
            ids in prop::collection::vec(any::<u64>(), 0..3 * BLOCK),
            steps in prop::collection::vec(0..3000_usize, 0..20),
        ) {
            let mut blocks = Blocks::new(&ids);
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let mut at = 0;
            for step in steps {
                prop_assert_eq!(blocks.remaining(), bytes.len() - at);
                prop_assert!(bytes[at..].starts_with(blocks.chunk()));
                prop_assert_eq!(blocks.chunk().is_empty(), at == bytes.len());
                let step = step.min(bytes.len() - at);
                blocks.advance(step);
                at += step;
            }
        }
    }
}
