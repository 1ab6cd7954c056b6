//! Tells the linker that Node supplies the `napi_` symbols.

fn main() {
    napi_build::setup();
}
