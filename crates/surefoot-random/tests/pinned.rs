//! The values of draws, which never change: a recorded run is replayed by them.
//!
//! When one of these fails, it is the code that is wrong.

use surefoot_random::{Key, Permutation, Purpose, choose};

fn words4(key: Key, block: u64) -> [u32; 4] {
    std::array::from_fn(|word| key.word(4 * block + word as u64))
}

fn key() -> Key {
    Key::new(0x0123_4567_89ab_cdef, Purpose::Dropout)
        .epoch(3)
        .sample(117)
        .site(0xfedc_ba98_7654_3210)
}

/// FNV-1a digest, a word at a time, of a fill of 10 007 numbers.
fn digest(fill: impl FnOnce(&mut [f32])) -> u64 {
    let mut out = vec![f32::NAN; 10_007];
    fill(&mut out);
    out.iter().fold(0xcbf2_9ce4_8422_2325, |digest, x| {
        (digest ^ u64::from(x.to_bits())).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn words() {
    assert_eq!(
        words4(Key::new(0, Purpose::Initialize), 0),
        [0x87ac_8be9, 0x5bfa_394f, 0x9d96_de50, 0xa255_9ca2]
    );
    assert_eq!(words4(key(), 0), [0x3be1_a883, 0x87cf_f667, 0x3483_35ae, 0x582a_c5af]);
    assert_eq!(words4(key(), 1 << 40), [0x6138_1b5c, 0x940b_82d0, 0x9458_bfe0, 0x340e_b712]);
    assert_eq!([0, 1, 6].map(|i| key().word(i)), [0x3be1_a883, 0x87cf_f667, 0x6c93_c511]);
    assert_eq!(
        [0, 1, 6].map(|i| key().u64(i)),
        [0x87cf_f667_3be1_a883, 0x582a_c5af_3483_35ae, 0x748b_2849_8300_31d9]
    );
}

#[test]
fn uniform() {
    assert_eq!(
        [0, 1, 6].map(|i| key().uniform(i)),
        [0.5305170061145704, 0.3444026520487682, 0.45524837298126]
    );
    assert_eq!([0, 1, 6].map(|i| key().uniform_f32(i)), [0.23391199, 0.530517, 0.42412978]);
    assert_eq!(digest(|out| key().fill_uniform_f32(out)), 0x8f7c_e7c5_efef_2bb6);
}

#[test]
fn normal() {
    assert_eq!(
        [0, 1, 4, 7].map(|i| key().normal(i)),
        [-0.6272169924647074, 0.9455019964513363, 0.26773529600408014, -1.6672348811746678]
    );
    assert_eq!(digest(|out| key().fill_normal_f32(out)), 0xedaa_fbf7_7b5e_125e);
}

#[test]
fn truncated_normal() {
    assert_eq!(
        [0, 1, 4, 7].map(|i| key().truncated_normal(i)),
        [-0.5949474380213963, 0.8885731910303919, 0.2552784479770195, -1.4884807036804004]
    );
    assert_eq!(digest(|out| key().fill_truncated_normal_f32(out)), 0xcc8e_a810_e11c_a99e);
}

#[test]
fn bernoulli() {
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 6, 7].map(|i| key().bernoulli(i, 0.5)),
        [true, false, true, true, false, true, true, false]
    );
    assert_eq!(digest(|out| key().fill_bernoulli_f32(0.8, 1.25, out)), 0x8b90_8a62_36dc_8067);
}

#[test]
fn below() {
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|i| key().below(i, 10)), [5, 3, 4, 5, 7, 3, 4, 0]);
    // Half of the words are rejected for this limit.
    assert_eq!(
        [0, 1, 2, 3].map(|i| key().below(i, (1 << 63) + 1)),
        [1501770391762114318, 4683732806797093700, 4004299829828331114, 3863361103198705703]
    );
}

#[test]
fn permutation() {
    let first_five = |n| Permutation::new(key(), n).iter().take(5).collect::<Vec<_>>();
    assert_eq!(first_five(10), [9, 7, 1, 8, 6]);
    assert_eq!(first_five(1000), [792, 379, 641, 323, 835]);
    assert_eq!(first_five(60_000), [25180, 35862, 35628, 35485, 47295]);
    assert_eq!(
        first_five(1 << 48),
        [205551063039679, 230207165044940, 79377429580449, 202675768523575, 82835753355337]
    );
}

#[test]
fn chosen() {
    assert_eq!(choose(key(), 10, 4).collect::<Vec<_>>(), [9, 7, 1, 8]);
}
