//! Prints how long packing and unpacking texts of several lengths takes: `cargo run --release -p pantala-types --example packed7_speed`.

use pantala_types::bitmap::count::count_ones;
use pantala_types::string::packed7;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 2_000_000;

fn main() {
    for len in [24usize, 64, 100, 128, 400, 1000] {
        let text: Vec<u8> = (0..len).map(|i| b'!' + (i * 7 % 90) as u8).collect();
        let mut packed = vec![0; packed7::packed_len(len)];
        let mut back = vec![0; len];
        let check = time(|| _ = black_box(packed7::is_ascii(black_box(&text))));
        let pack = time(|| packed7::pack(black_box(&text), black_box(&mut packed)));
        let unpack = time(|| packed7::unpack(black_box(&packed), black_box(&mut back)));
        assert_eq!(back, text);
        println!(
            "{len:5} characters: check {check:6.2} ns, pack {pack:6.2} ns, unpack {unpack:6.2} ns"
        );
    }
    let bits = vec![0x5a; 64 * 1024];
    let rounds = 2_000;
    let start = Instant::now();
    for _ in 0..rounds {
        black_box(count_ones(black_box(&bits)));
    }
    let gb_s = f64::from(rounds) * bits.len() as f64 / start.elapsed().as_secs_f64() / 1e9;
    println!("counting bits: {gb_s:.1} GB/s");
}

fn time(mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..ROUNDS {
        f();
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
}
