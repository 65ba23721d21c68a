//! A cursor over bytes that nobody vouched for: every step is checked. The payload's container and the guard read with it.

/// What is left to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub &'a [u8]);

/// The bytes end or spell no number where one should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut;

impl<'a> Bytes<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Cut> {
        let (head, tail) = self.0.split_at_checked(count).ok_or(Cut)?;
        self.0 = tail;
        Ok(head)
    }

    pub fn byte(&mut self) -> Result<u8, Cut> {
        self.take(1)?.first().copied().ok_or(Cut)
    }

    /// Four bytes, most significant first, and as many bytes as they say.
    pub fn section(&mut self) -> Result<&'a [u8], Cut> {
        let length: [u8; 4] = self.take(4)?.try_into().map_err(|_| Cut)?;
        self.take(usize::try_from(u32::from_be_bytes(length)).map_err(|_| Cut)?)
    }

    /// Unsigned LEB128.
    pub fn unsigned(&mut self) -> Result<u64, Cut> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            if shift >= 64 || (shift == 63 && low > 1) {
                return Err(Cut);
            }
            value |= low << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// Signed LEB128.
    pub fn signed(&mut self) -> Result<i64, Cut> {
        let (mut value, mut shift) = (0_i64, 0_u32);
        loop {
            let byte = self.byte()?;
            let low = i64::from(byte & 0x7f);
            if shift >= 64 || (shift == 63 && low != 0 && low != 0x7f) {
                return Err(Cut);
            }
            value |= low << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                let negative = byte & 0x40 != 0;
                return Ok(if negative && shift < 64 { value | (-1 << shift) } else { value });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_leb128_says() {
        assert_eq!(Bytes(&[0xe5, 0x8e, 0x26]).unsigned(), Ok(624_485));
        assert_eq!(Bytes(&[0xc0, 0xbb, 0x78]).signed(), Ok(-123_456));
        assert_eq!(Bytes(&[0x7f]).signed(), Ok(-1));
        assert_eq!(Bytes(&[0x80]).unsigned(), Err(Cut));
        assert_eq!(Bytes(&[0xff; 11]).unsigned(), Err(Cut));
        assert_eq!(Bytes(&[0xff; 11]).signed(), Err(Cut));
    }

    #[test]
    fn a_section_that_promises_more_than_there_is_is_cut() {
        assert_eq!(Bytes(&[0, 0, 0, 2, 7]).section(), Err(Cut));
        assert_eq!(Bytes(&[0xff, 0xff, 0xff, 0xff]).section(), Err(Cut));
        assert_eq!(Bytes(&[0, 0, 0, 1, 7]).section(), Ok(&[7][..]));
    }
}
