//! `Send` where there are threads, nothing where there are none (wasm). The only place that knows.

#[cfg(not(target_arch = "wasm32"))]
mod bounds {
    /// `Send` on native targets.
    pub trait MaybeSend: Send {}
    impl<T: Send + ?Sized> MaybeSend for T {}
    /// `Sync` on native targets.
    pub trait MaybeSync: Sync {}
    impl<T: Sync + ?Sized> MaybeSync for T {}
    /// A future in a box.
    pub type BoxedFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
}

#[cfg(target_arch = "wasm32")]
mod bounds {
    /// Nothing on wasm.
    pub trait MaybeSend {}
    impl<T: ?Sized> MaybeSend for T {}
    /// Nothing on wasm.
    pub trait MaybeSync {}
    impl<T: ?Sized> MaybeSync for T {}
    /// A future in a box.
    pub type BoxedFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + 'a>>;
}

pub use bounds::{BoxedFuture, MaybeSend, MaybeSync};
