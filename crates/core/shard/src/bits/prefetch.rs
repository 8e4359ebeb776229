//! The instructions that safe Rust has no names for. Everything here has a portable stand-in.
#![allow(unsafe_code, reason = "prefetch and pdep have no safe form; both are checked for or harmless on any address")]

/// Asks for the cache line that holds `bytes[at]`; nothing happens beyond the end.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if at < bytes.len() {
        // SAFETY: the address lies inside the slice, and a prefetch has no effect that a program could see.
        unsafe { core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(bytes.as_ptr().add(at).cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (bytes, at);
}

/// Whether the processor has pdep; the answer is kept by the standard library, one load.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(crate) fn has_bmi2() -> bool {
    std::arch::is_x86_feature_detected!("bmi2")
}

/// Whether the processor counts, finds and deposits bits in one instruction each.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(crate) fn has_bit_instructions() -> bool {
    has_bmi2() && std::arch::is_x86_feature_detected!("popcnt") && std::arch::is_x86_feature_detected!("bmi1")
}

/// Compiles a function twice, for any processor and for those that [`has_bit_instructions`], and calls what fits: counting
/// the ones of a word takes a dozen instructions without, and loops over psi and Elias-Fano do little else. What is to gain
/// must be inlined into the body.
macro_rules! with_bit_instructions {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name($($arg: $type),*) $(-> $out)? {
            #[inline(always)]
            fn any($($arg: $type),*) $(-> $out)? $body
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            {
                #[target_feature(enable = "bmi1,bmi2,popcnt")]
                fn with_instructions($($arg: $type),*) $(-> $out)? {
                    any($($arg),*)
                }
                if $crate::bits::prefetch::has_bit_instructions() {
                    #[allow(unsafe_code, reason = "instructions that not every processor has")]
                    // SAFETY: the processor has just been asked.
                    return unsafe { with_instructions($($arg),*) };
                }
            }
            any($($arg),*)
        }
    };
}
pub(crate) use with_bit_instructions;

/// The position of the `k`-th one: deposit one bit there, count the zeros below.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(crate) fn select_bmi2(word: u64, k: u32) -> u32 {
    #[target_feature(enable = "bmi2")]
    fn deposit(word: u64, k: u32) -> u64 {
        core::arch::x86_64::_pdep_u64(1 << k, word)
    }
    // SAFETY: the caller has seen `has_bmi2`.
    unsafe { deposit(word, k) }.trailing_zeros()
}
