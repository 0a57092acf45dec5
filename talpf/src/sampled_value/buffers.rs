//! The buffers of a sampled value at one reader.
#![allow(unsafe_code, reason = "reads and writes the buffers that an exchange gives out")]

use bytemuck::Pod;
use talpf_runtime::Array;

use super::exchange::{BUFFERS, Back, Exchange, Front};

/// An array of three values with their exchange. No task has a guard of the array.
pub(super) struct Buffers<T> {
    array: Array<T>,
    exchange: Exchange,
}

impl<T: Pod + Send + Sync> Buffers<T> {
    /// Makes the buffers of an array of three values, with those of the writer and of the reader.
    pub(super) fn new(array: Array<T>) -> (Self, Back, Front) {
        assert_eq!(array.len(), BUFFERS, "a value for each buffer");
        let (exchange, back, front) = Exchange::new();
        (Buffers { array, exchange }, back, front)
    }

    /// Writes a value and leaves it for the reader.
    #[inline]
    pub(super) fn write(&self, back: &mut Back, value: T) {
        // SAFETY: the array has as many elements as there are buffers.
        let buffer = unsafe { self.array.as_mut_ptr().add(back.index()) };
        // SAFETY: the buffer is that of the writer, as the one `Back` of the exchange says, until
        // `publish` takes it.
        unsafe { buffer.write(value) };
        self.exchange.publish(back);
    }

    /// Leaves the buffer of the writer, which the device has written, for the reader.
    pub(super) fn publish(&self, back: &mut Back) {
        self.exchange.publish(back);
    }

    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        self.exchange.is_fresh()
    }

    /// Takes the latest value in place of the one that the reader has. Returns `false` if it has
    /// that.
    #[inline]
    pub(super) fn take(&self, front: &mut Front) -> bool {
        self.exchange.take(front)
    }

    /// Returns the value that the reader has.
    #[inline]
    pub(super) fn read(&self, front: &Front) -> T {
        // SAFETY: the array has as many elements as there are buffers.
        let buffer = unsafe { self.array.as_mut_ptr().add(front.index()) };
        // SAFETY: any bytes are a value. The buffer is that of the reader, as the one `Front` of the
        // exchange says; what was written to it came before the swap by which it was taken.
        unsafe { buffer.read() }
    }
}
