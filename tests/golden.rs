//! Promise 1 (same work everywhere): the root digests of all built-in corpora, written down once. They are the same on every system and processor.
//!
//! A change here breaks every comparison with results measured before: raise the corpus's version instead.
#![expect(clippy::unwrap_used, reason = "a test ends where something is wrong")]

use copysim::catalogue::Environment;
use copysim::corpus::catalogue::{CORPORA, corpus};
use copysim::corpus::identity::digest_into;
use copysim::corpus::manifest::Root;
use copysim::platform::OS;
use copysim::progress::{Cancel, Counter};
use copysim::scenario::stage::makers;

/// The root digest of a corpus, made without writing it, after checking that it is as large as its spec says.
fn root(name: &str, seed: u64, scale: &str) -> String {
    let corpus = corpus(name, seed, scale.parse().unwrap(), &Environment::default()).unwrap();
    let mut root = Root::default();
    let counter = Counter::default();
    let add = |file| {
        root.add(&file);
        Ok(())
    };
    digest_into(OS, &corpus, makers(), &counter, &Cancel::default(), add).unwrap();
    assert_eq!((counter.files(), counter.bytes()), (corpus.file_count(), corpus.byte_count()));
    root.digest().to_hex().to_string()
}

/// One test for each corpus, so that they run side by side: at full scale, and at 1 % with seed 1.
macro_rules! golden {
    ($($test:ident = $name:literal, $full:literal, $small:literal;)+) => {
        $(
            #[test]
            fn $test() {
                assert_eq!(root($name, 1, "1%"), $small, "at 1 % with seed 1");
                assert_eq!(root($name, 0, "100%"), $full, "at full scale");
            }
        )+

        #[test]
        fn every_built_in_corpus_is_written_down() {
            assert_eq!(CORPORA.built_in.iter().map(|(name, _)| *name).collect::<Vec<_>>(), [$($name),+]);
        }
    };
}

golden! {
    browser = "browser",
        "59a837fa5480afd52a8eaf05b6fce05d9e2796f91320ca54fa496d95ecf8cfe8",
        "7273b2694ab395e47724cbc4e70964cb3c02c9e382e1a1716fc787686536cafc";
    compressible_46 = "compressible-46",
        "5d690456129a4bac759c3be08c954661e09c85afd31ca55b06984a1b47fe9910",
        "4f3d9496c69caedea013c82dbc688e4ac1ae141a896c84289cd84e2bcc9ac99d";
    compressible_67 = "compressible-67",
        "a5985341ad555c215985323b04f686054286a567774336be76ac912bf07e6168",
        "c31aca66d423384b1ab015c791a95c012b3928f6f19bbc1ab87ec84a814b5a67";
    compressible_8 = "compressible-8",
        "a8df9aaf23715ef0808d8ac08f31ded7e72a4909a81d3a545485fd21efdfeabc",
        "da83c9466f865e8b35fe09abcd72254118cb358a48b5e597d9f5e559670349f4";
    game = "game",
        "82171cce06f28c26a9fff5f1638980e3a9719357e3af5c324df33966ea1514dd",
        "8b1162d253c1a5a380e7d8eefc98cfc3c43ca53cccc39b4f3ec1e7e16df70770";
    ide = "ide",
        "73d5ce12555607b9fdb04adb14efbdce3bcc8677b919b9872c71b2d491c025d0",
        "5f98e0caab4f03ed4e6165531ed20c888bb6cc85da16da75c4fce9494d11be59";
    incompressible = "incompressible",
        "7606f661eb981e5a577221f3b1c76b67b5d07e634775f4f9d40cd739f5e52618",
        "fb2738c2eadf07e3ed85a68e4014f2aa7a53aabdb3d11542bcf3f28b647e8dea";
    jpg = "jpg",
        "404297b87c9bb22c29c7623d3de560f18d680b75123e1562f1193a8f01811830",
        "62714b2ab2081aaf4c9d4a8977b96305b3b8b4cdee362bf9e6cdefd34d4e523a";
    large_file = "large-file",
        "1ce200f26a1d06f3ded0842e7260b081b3f3964a98208b59ec89eed09f6f48b1",
        "5ea1a20c05640a14aaa747e8068d8192a51970c5d89f1d6d768a2584114d20c2";
    mailbox = "mailbox",
        "1757880ab7b57f62b3512b7ba1eeafca45898f7caf2e51fd829b634ce6e80a76",
        "64fe24af658945ce41cef32df173aa7fa5c5cd6b4c9d8eff0e1c71601d2030ca";
    mixed = "mixed",
        "c779f6572620ae5c2946db3ef887ddb3acfa2daaa754726fbaf60f30d67c3674",
        "9589c19e085c320204198b314db5da0e8b093026b23ff3eedfe0888607add373";
    mixed_25 = "mixed-25",
        "a57fb6221a167ba47a570f32cf3cd3498922cc09a7bb6ff80cd7d7fc885731a4",
        "76c0c98647a228068810d43a80c2640f274f480d7f816ba508832e850848cd76";
    mixed_75 = "mixed-75",
        "03f2e773799928b1030e776774ec39921152005ae028c7eaa2a13ffad27fbbb2",
        "30b580153658e77e4f55ceadb5aeae1b6ec16c94c5328cbe89271e3efc414700";
    mp3 = "mp3",
        "55b4589c8b81514ac11a7ee4a23c0eef3958d4c7e86ab276b5bd57ef37b745b2",
        "a1d8112ee9c777c2fd063e54350084450cd1acad65082c73729f1429c7244562";
    office_suite = "office-suite",
        "c5d2726a6a12ab049edc04d494d115f67729294ec2ac0f38925935443de07dd6",
        "bdd3357c3df7cc7950eef04498ee1def752e71093634cdb07d03af231dab8f4b";
    photo_editor = "photo-editor",
        "af168abc6e95c7cf56cec83b767967c89d9fe6034e02f4fd90f4f883e6ad13ab",
        "3ca78fb8b14aa55a23e3950832fdee305b9dcf6683b5386153489b0882b2fd15";
    pictures = "pictures",
        "748f3d9f1088e89b4c50195d7d22c281a92f8eda17e29692079386c8e9e448fa",
        "f05107c467477f8f46315e176204ce2274a38bc34dd4ff32118ad3648f172cda";
    small_files = "small-files",
        "ebabd6c699f7c0796ce98891a510efdd7e4a08156a53b8b8824015f3efc3d8ec",
        "af1c0279fd80af461a02cba6786a5ee00330e36b887d5878c43dd2da709e8a36";
    zero_fill = "zero-fill",
        "3bc2907a9c705537b26ce50e4879139519c06ab5725235305c33ca94d6847682",
        "aa6c7cc88111d86566870c01d4dad6cf08281ea27a6be3f10453d2d12263be86";
}

#[test]
fn more_than_all_of_a_corpus_is_written_down_too() {
    assert_eq!(root("small-files", 0, "200%"), "b6445ee26d40eb877dc4de938ff4e913c70d1d7b0a7fd4f4aa214d9ad2d54dfd");
}
