//! Types that are read from and written to as one of their fields is.

/// Has a type read (`read field: Type`) or written to (`write field: Type`) as one of its fields is. Where the field's type is a parameter
/// of the type, it is named behind it.
#[macro_export]
macro_rules! through {
    (read $field:ident: $of:ty) => {
        const _: () = {
            use ::std::{io, pin::Pin, task};
            use ::tokio::io::{AsyncRead, ReadBuf};

            impl AsyncRead for $of {
                fn poll_read(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>, into: &mut ReadBuf<'_>) -> task::Poll<io::Result<()>> {
                    Pin::new(&mut self.$field).poll_read(cx, into)
                }
            }
        };
    };
    (write $field:ident: $of:ty $(, $io:ident)?) => {
        const _: () = {
            use ::std::{io, pin::Pin, task};
            use ::tokio::io::AsyncWrite;

            impl $(<$io: AsyncWrite + Unpin>)? AsyncWrite for $of {
                fn poll_write(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>, bytes: &[u8]) -> task::Poll<io::Result<usize>> {
                    Pin::new(&mut self.$field).poll_write(cx, bytes)
                }

                fn poll_write_vectored(
                    mut self: Pin<&mut Self>,
                    cx: &mut task::Context<'_>,
                    slices: &[io::IoSlice<'_>],
                ) -> task::Poll<io::Result<usize>> {
                    Pin::new(&mut self.$field).poll_write_vectored(cx, slices)
                }

                fn is_write_vectored(&self) -> bool {
                    self.$field.is_write_vectored()
                }

                fn poll_flush(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<io::Result<()>> {
                    Pin::new(&mut self.$field).poll_flush(cx)
                }

                fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<io::Result<()>> {
                    Pin::new(&mut self.$field).poll_shutdown(cx)
                }
            }
        };
    };
}
