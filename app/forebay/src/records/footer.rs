//! Footers of Parquet files, before the library reads them: some fifty bytes of one can end the process.

use std::fs::File;
use std::os::unix::fs::FileExt;

use forebay_table::{PARQUET_TAIL_BYTES, check_parquet_footer, parquet_footer_bytes};
use forebay_types::Result;

/// Checks the footer of a file of so many bytes. What is none of a whole Parquet file is the library's to refuse.
pub(super) fn check_footer(file: &File, bytes: u64) -> Result<()> {
    let Some(end) = bytes.checked_sub(PARQUET_TAIL_BYTES as u64) else { return Ok(()) };
    let mut tail = [0; PARQUET_TAIL_BYTES];
    file.read_exact_at(&mut tail, end)?;
    let Some(start) = parquet_footer_bytes(&tail).and_then(|length| end.checked_sub(length.into())) else { return Ok(()) };
    let mut footer = vec![0; (end - start) as usize];
    file.read_exact_at(&mut footer, start)?;
    Ok(check_parquet_footer(&footer)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use forebay_types::ErrorKind;

    use super::*;

    #[test]
    fn a_file_that_says_that_it_has_more_row_groups_than_there_can_be_is_refused() {
        // A version, a schema without a field, and 2^31 - 1 row groups.
        let footer: [u8; 17] = [0x15, 2, 0x19, 0x1c, 0x48, 0, 0, 0x16, 0, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0];
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[b"PAR1", &footer[..], &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()).unwrap();
        let bytes = file.metadata().unwrap().len();
        assert_eq!(check_footer(&file, bytes).unwrap_err().kind(), ErrorKind::Corrupt);
        for short in [0, 3, 8, bytes - 1] {
            check_footer(&file, short).unwrap();
        }
    }
}
