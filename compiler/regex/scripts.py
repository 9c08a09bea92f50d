"""Code points of Unicode scripts and binary properties, by the names that ``\\p{…}`` uses.

Leaves out   general categories (categories.py), every other property: a pattern that names one is refused, never
             approximated.
Invariants   a text holds the ranges of a set in ascending order, parted by blanks: how many code points are left out
             before a range, and behind a point how many more than one it has, in base 36.
Source       Unicode 17.0. tests/grammar/test_regex.py compares every set with an engine of ECMA-262.
"""

from __future__ import annotations

SCRIPTS: dict[str, str] = {
    "Adlam": "2olc.23 4.9 4.1",
    "Ahom": "1j40.q 2.e 4.m",
    "Anatolian_Hieroglyphs": "1s00.g6",
    "Arabic": (
        "16o.4 1.5 1.d 1.2 1.v 1.9 b.p 1.2z 1.x 28.1b 6o.x 5.22 1.s 1bv4.dp 2.3z w.f 34.4 1.3q 31f.u 1v.5 8.8 x.5 "
        "181s.3 1.q 1.1 1 2 1.9 1.3 1 1 6 4 1 1 1.2 1.1 1 2 1 1 1 1 1.1 1 2.3 1.6 1.3 1.3 1 1.9 1.g 5.2 1.4 1.g 1g.1"
    ),
    "Armenian": "10x.11 2.1d 2.2 1chv.4",
    "Avestan": "1gqo.1h 3.6",
    "Balinese": "5c0.24 1.1d",
    "Bamum": "www.2f 124o.fs",
    "Bassa_Vah": "1zo0.t 2.5",
    "Batak": "5hc.1f 8.3",
    "Bengali": "1vk.3 1.7 2.1 2.l 1.6 1 3.3 2.8 2.1 2.3 8 4.1 1.4 2.o",
    "Bhaiksuki": "1k3k.8 1.18 1.d a.s",
    "Bopomofo": "kq.1 93t.16 34.v",
    "Brahmi": "1hq8.25 4.z 9",
    "Braille": "7wg.73",
    "Buginese": "54w.r 2.1",
    "Buhid": "4lc.j",
    "Canadian_Aboriginal": "3y8.hr fk.1x 1ewq.f",
    "Carian": "1f34.1c",
    "Caucasian_Albanian": "1flc.1f b",
    "Chakma": "1hxc.1g 1.h",
    "Cham": "xkw.1i 9.d 2.9 2.3",
    "Cherokee": "3vk.2d 2.5 twy.27",
    "Chorasmian": "1ho0.r",
    "Common": (
        "0.1s q.5 q.1a 1.e 1.4 n v ch.12 5.4 2.j 38 9 6 1 hp 6 e 3 w 4c ec 3l.1 yh b9.3 82 167.2 1z.1 5n.1 1 y5 d 7.3 "
        "1.5 1.2 2 lh.b 2.2e 1.a 3.a 1.e h.x 1q.11 1.2 2.5 1.q 1.g 15.2 4.ih m.a l.pr 74.hf 2.3t e8.2l b6.k 1 1.o f.7 "
        "4.3 2j.1 3 2i.1 43.f w.11 9 1c.1r v.28 1b 2g.4n 534.1r hkw.x 2u.2 4l.9 6s 4g az e.1 g5u.1 5s.9 m.y 1.i 1.3 "
        "43 1.v q.5 q.a a 19.1 1s.6 1.6 a.4 76.2 4.18 3.8 28.c 1f.18 6c.q 10o4.3 318.70 3.c3 6.m f.g 2n.37 1o.6t a.12 "
        "2.1p 3.g 8.1 7.t 4.1o 5x.j c.j c.2e 9.o 3r.2c 1.1y 1.1 2 2.1 2.3 1.b 1 1.6 1.1s 1.3 2.7 1.6 1.r 1.3 1.4 1 "
        "3.6 1.9f 2.83 2.1d 41d.1v 24.1o jm.17 4.2r c.e 2.e 1.e 1.10 a.4t 1k.p 1.1 d.17 4.8 7.1 e.5 4a.rc 3.g 3.c "
        "3.61 6.b 4 f.b 4.1j 8.9 6.13 8.t 2.b 4.1 e.8 13.9j 8.d 2.c 3.a 3.1k 1 4.f 2.b 4.9 7.42 1.2u gvly u.2n"
    ),
    "Coptic": "rm.d 80g.37 5.6",
    "Cuneiform": "1kw0.pl 2u.32 1.4 b.5f",
    "Cypriot": "1g5c.5 2 1.17 1.1 3 2",
    "Cypro_Minoan": "1nyo.2q",
    "Cyrillic": "sg.3o 2.4o 4ls.a 4g 24 38n.v nr4.2n ham.1 18n4.1p x",
    "Deseret": "1fcw.27",
    "Devanagari": "1s0.28 4.e 2.p vhc.v mio.9",
    "Dives_Akuru": "1ji8.6 2 2.7 1.1 1.t 1.1 2.b 9.9",
    "Dogra": "1jb4.1n",
    "Duployan": "2fpc.2y 5.c 3.8 7.9 2.3",
    "Egyptian_Hieroglyphs": "1o1s.ut a.32y",
    "Elbasan": "1fk0.13",
    "Elymaic": "1hpc.m",
    "Ethiopic": (
        "3k0.20 1.3 2.6 1 1.3 2.14 1.3 2.w 1.3 2.6 1 1.3 2.e 1.1k 1.3 2.1u 2.v 3.p 546.m 9.6 1.6 1.6 1.6 1.6 1.6 1.6 "
        "1.6 opu.5 2.5 2.5 9.6 1.6 1qk1.6 1.3 1.1 1.e"
    ),
    "Garay": "1h6o.11 3.s 8.1",
    "Georgian": "3a8.11 1 5 2.16 1.3 2a8.16 2.2 37k.11 1 5",
    "Glagolitic": "8ow.2n 2e1s.6 1.g 2.6 1.1 1.4",
    "Gothic": "1f74.q",
    "Grantha": "1ibk.3 1.7 2.1 2.l 1.6 1.1 1.4 2.8 2.1 2.2 2 6 5.6 2.6 3.4",
    "Greek": (
        "og.3 1.2 2.3 1 4 1 1.2 1 1.j 1.1q e.f 4yu.4 1e.4 4.4 2c 8w.l 2.5 2.11 2.5 2.7 1 1 1 1.u 2.1g 1.e 1.d 2.5 1.i "
        "2.2 1.8 87 rb2 gyi.26 h 155r.1x"
    ),
    "Gujarati": "22p.2 1.8 1.2 1.l 1.6 1.1 1.4 2.9 1.2 1.2 2 f.3 2.b 7.6",
    "Gunjala_Gondi": "1kdc.5 1.1 1.10 1.1 1.5 7.9",
    "Gurmukhi": "1z5.2 1.5 4.1 2.l 1.6 1.1 1.1 1.1 2 1.4 4.1 2.2 3 7.3 1 7.g",
    "Gurung_Khema": "1xq8.1l",
    "Han": (
        "96o.p 1.2g c.5x 1b 1 p.8 e.3 qs.533 1s.g73 hkw.a5 2.2x n48.1 c.6 sg9.wyn w.3dp 2.4gd 2.5rk f.h9 1wi.f1 "
        "15u.3t6 5.6jt"
    ),
    "Hangul": "3cw.73 5ym.1 75.2l 35.u 1t.u nhd.s hv.8mb c.m 4.1c 7tw.u 3.5 2.5 2.5 2.2",
    "Hanifi_Rohingya": "1h4w.13 8.9",
    "Hanunoo": "4kg.k",
    "Hatran": "1gbk.i 1.1 5.4",
    "Hebrew": "13l.1i 8.q 4.5 1cfc.p 1.4 1 1.1 1.1 1.9",
    "Hiragana": "9j5.2d 6.2 23q9.7y i t.2 crx",
    "Imperial_Aramaic": "1g74.l 1.8",
    "Inherited": (
        "lc.33 7p.1 ck.a q kg.3 3ff.19 2.b dg.2 1.c 1.6 4 6 3.1 5i.1r ek.1 5e.w 309.3 2z.1 14kl.f g.d r3 6a 38a "
        "1138.19 2.m f4.2 h.7 2.6 u.3 h45u.6n"
    ),
    "Inscriptional_Pahlavi": "1gtc.i 5.7",
    "Inscriptional_Parthian": "1gsg.l 2.7",
    "Javanese": "xhc.25 2.9 4.1",
    "Kaithi": "1hts.1u a",
    "Kannada": "2gw.c 1.2 1.m 1.9 1.4 2.8 1.2 1.3 7.1 5.2 1.3 2.9 1.2",
    "Katakana": "9lt.2h 2.2 6o.f 5s.1a 1.2f 14b2.9 1.18 ytu.3 1.6 1.1 1 7z.2 1e e.3",
    "Kawi": "1kow.g 1.14 3.s",
    "Kayah_Li": "xds.19 1",
    "Kharoshthi": "1gjk.3 1.1 5.7 1.2 1.s 2.2 4.9 7.8",
    "Khitan_Small_Script": "20o4 5cr.d1 15",
    "Khmer": "4n4.2l 2.9 6.9 di.v",
    "Khojki": "1i4g.h 1.1a",
    "Khudawadi": "1i9c.1m 5.9",
    "Kirat_Rai": "205c.1l",
    "Lao": "2v5.1 1 1.4 1.n 1 1.m 2.4 1 1.6 1.9 2.3",
    "Latin": (
        "1t.p 6.p 1b f 5.m 1.u 1.cg 13.4 55n.11 6.1c 5.3 5.c 1.1x 1t.73 a9 d g.c 3x.1 6 r h.14 253.v o82.2t 3.29 k.e "
        "mo.16 1.8 1.3 fpy.6 t6.p 6.p 1lx.5 1.15 1.8 16it.u 6.5"
    ),
    "Lepcha": "5j4.1j 3.e 3.2",
    "Limbu": "4xs.u 1.b 4.b 4 3.b",
    "Linear_A": "1fr4.8m 9.l a.7",
    "Linear_B": "1ekg.b 1.p 1.i 1.1 1.e 2.d y.3e",
    "Lisu": "wk0.1b o8g",
    "Lycian": "1f28.s",
    "Lydian": "1gdc.p 5",
    "Mahajani": "1hzk.12",
    "Makasar": "1ko0.o",
    "Malayalam": "2kg.c 1.2 1.1e 1.2 1.5 4.f 2.p",
    "Mandaic": "1mo.r 2",
    "Manichaean": "1gow.12 4.b",
    "Marchen": "1k6o.v 2.l 1.d",
    "Masaram_Gondi": "1kao.6 1.1 1.17 3 1.1 1.8 8.9",
    "Medefaidrin": "20cg.2i",
    "Meetei_Mayek": "xr4.m 5l.19 2.9",
    "Mende_Kikakui": "2oe8.5g 2.f",
    "Meroitic_Cursive": "1ggw.n 4.j 2.19",
    "Meroitic_Hieroglyphs": "1gg0.v",
    "Miao": "20hs.22 4.1k 7.g",
    "Modi": "1iww.1w b.9",
    "Mongolian": "4qo.1 2 1.j 6.2g 7.16 1e45.c",
    "Mro": "1zk0.u 1.9 4.1",
    "Multani": "1i80.6 1 1.3 1.e 1.a",
    "Myanmar": "35s.4f u9s.u 2p.v le8.j",
    "Nabataean": "1g8w.u 8.8",
    "Nag_Mundari": "2nrk.15",
    "Nandinagari": "1jmo.7 2.19 2.a",
    "New_Tai_Lue": "51c.17 4.p 6.a 3.1",
    "Newa": "1iio.2j 1.4",
    "Nko": "1j4.1m 2.2",
    "Nushu": "20o1 cy6.az",
    "Nyiakeng_Puachue_Hmong": "2n0g.18 3.d 2.9 4.1",
    "Ogham": "4g0.s",
    "Ol_Chiki": "5lc.1b",
    "Ol_Onal": "2nyo.16 4",
    "Old_Hungarian": "1h1c.1e d.1e 7.5",
    "Old_Italic": "1f5s.z 9.2",
    "Old_North_Arabian": "1gn4.v",
    "Old_Permic": "1f80.16",
    "Old_Persian": "1fa8.z 4.d",
    "Old_Sogdian": "1hj4.13",
    "Old_South_Arabian": "1gm8.v",
    "Old_Turkic": "1gxs.20",
    "Old_Uyghur": "1hm8.p",
    "Oriya": "269.2 1.7 2.1 2.l 1.6 1.1 1.4 2.8 2.1 2.2 7.2 4.1 1.4 2.h",
    "Osage": "1fhs.z 4.z",
    "Osmanya": "1fgg.t 2.9",
    "Pahawh_Hmong": "1zpc.1x a.9 1.6 1.k 5.i",
    "Palmyrene": "1g80.v",
    "Pau_Cin_Hau": "1juo.1k",
    "Phags_Pa": "x8g.1j",
    "Phoenician": "1gcg.r 3",
    "Psalter_Pahlavi": "1gu8.h 7.3 c.6",
    "Rejang": "xf4.z b",
    "Runic": "4gw.22 3.a",
    "Samaritan": "1kw.19 2.e",
    "Saurashtra": "xa8.1x 8.b",
    "Sharada": "1i0w.2n 1vk.7",
    "Shavian": "1ff4.1b",
    "Siddham": "1itc.1h 2.11",
    "SignWriting": "2l8g.i3 f.4 1.e",
    "Sinhala": "2o1.2 1.h 3.n 1.8 1 2.6 3 4.5 1 1.7 6.9 2.2 1fcc.j",
    "Sogdian": "1hkg.15",
    "Sora_Sompeng": "1hw0.o 7.9",
    "Soyombo": "1jrk.2a",
    "Sundanese": "5fk.1r 74.7",
    "Sunuwar": "1k1s.x e.9",
    "Syloti_Nagri": "x6o.18",
    "Syriac": "1ds.d 1.1n 2.2 7k.a",
    "Tagalog": "4jk.l 9",
    "Tagbanwa": "4m8.c 1.2 1.1",
    "Tai_Le": "500.t 2.4",
    "Tai_Tham": "55s.1q 1.s 2.a 6.9 6.d",
    "Tai_Viet": "xog.1u o.4",
    "Takri": "1j0g.1l 6.9",
    "Tamil": "29u.1 1.5 3.2 1.3 3.1 1 1.1 3.1 3.2 3.b 4.4 3.2 1.3 2 6 e.k 1ih1.1d d",
    "Tangsa": "1zlc.26 1.9",
    "Tangut": "20o0 v.5bz e8.u 2p.36",
    "Telugu": "2dc.c 1.2 1.m 1.f 2.8 1.2 1.3 7.1 1.2 1.1 2.3 2.9 7.8",
    "Thaana": "1hc.1d",
    "Thai": "2rl.1l 5.r",
    "Tibetan": "2yo.1z 1.z 4.12 1.z 1.e 1.6 4.1",
    "Tifinagh": "8xc.1j 7.1 e",
    "Tirhuta": "1im8.1z 8.9",
    "Todhri": "1fpc.1f",
    "Toto": "2nbk.u",
    "Tulu_Tigalari": "1if4.9 1 2 1.11 1.9 1 2 1.3 1.9 1.1 8.1",
    "Ugaritic": "1f9c.t 1",
    "Vai": "wlc.8b",
    "Vithkuqi": "1fn4.a 1.e 1.6 1.1 1.a 1.e 1.6 1.1",
    "Wancho": "2ncw.1l 5",
    "Warang_Citi": "1jfk.2a c",
    "Yezidi": "1hfk.15 1.2 2.1",
    "Yi": "vls.wc 3.1i",
    "Zanabazar_Square": "1jpc.1z",
    "Sidetic": "1ge8.p",
    "Tolong_Siki": "1kfk.17 4.9",
    "Beria_Erfe": "20f4.o 2.o",
    "Tai_Yo": "2o5c.u 1.l 8.1",
}
"""Script → its code points."""

SCRIPT_ALIASES: dict[str, str] = {
    "Adlm": "Adlam",
    "Hluw": "Anatolian_Hieroglyphs",
    "Arab": "Arabic",
    "Armn": "Armenian",
    "Avst": "Avestan",
    "Bali": "Balinese",
    "Bamu": "Bamum",
    "Bass": "Bassa_Vah",
    "Batk": "Batak",
    "Beng": "Bengali",
    "Bhks": "Bhaiksuki",
    "Bopo": "Bopomofo",
    "Brah": "Brahmi",
    "Brai": "Braille",
    "Bugi": "Buginese",
    "Buhd": "Buhid",
    "Cans": "Canadian_Aboriginal",
    "Cari": "Carian",
    "Aghb": "Caucasian_Albanian",
    "Cakm": "Chakma",
    "Cher": "Cherokee",
    "Chrs": "Chorasmian",
    "Zyyy": "Common",
    "Copt": "Coptic",
    "Qaac": "Coptic",
    "Xsux": "Cuneiform",
    "Cprt": "Cypriot",
    "Cpmn": "Cypro_Minoan",
    "Cyrl": "Cyrillic",
    "Dsrt": "Deseret",
    "Deva": "Devanagari",
    "Diak": "Dives_Akuru",
    "Dogr": "Dogra",
    "Dupl": "Duployan",
    "Egyp": "Egyptian_Hieroglyphs",
    "Elba": "Elbasan",
    "Elym": "Elymaic",
    "Ethi": "Ethiopic",
    "Gara": "Garay",
    "Geor": "Georgian",
    "Glag": "Glagolitic",
    "Goth": "Gothic",
    "Gran": "Grantha",
    "Grek": "Greek",
    "Gujr": "Gujarati",
    "Gong": "Gunjala_Gondi",
    "Guru": "Gurmukhi",
    "Gukh": "Gurung_Khema",
    "Hani": "Han",
    "Hang": "Hangul",
    "Rohg": "Hanifi_Rohingya",
    "Hano": "Hanunoo",
    "Hatr": "Hatran",
    "Hebr": "Hebrew",
    "Hira": "Hiragana",
    "Armi": "Imperial_Aramaic",
    "Zinh": "Inherited",
    "Qaai": "Inherited",
    "Phli": "Inscriptional_Pahlavi",
    "Prti": "Inscriptional_Parthian",
    "Java": "Javanese",
    "Kthi": "Kaithi",
    "Knda": "Kannada",
    "Kana": "Katakana",
    "Kali": "Kayah_Li",
    "Khar": "Kharoshthi",
    "Kits": "Khitan_Small_Script",
    "Khmr": "Khmer",
    "Khoj": "Khojki",
    "Sind": "Khudawadi",
    "Krai": "Kirat_Rai",
    "Laoo": "Lao",
    "Latn": "Latin",
    "Lepc": "Lepcha",
    "Limb": "Limbu",
    "Lina": "Linear_A",
    "Linb": "Linear_B",
    "Lyci": "Lycian",
    "Lydi": "Lydian",
    "Mahj": "Mahajani",
    "Maka": "Makasar",
    "Mlym": "Malayalam",
    "Mand": "Mandaic",
    "Mani": "Manichaean",
    "Marc": "Marchen",
    "Gonm": "Masaram_Gondi",
    "Medf": "Medefaidrin",
    "Mtei": "Meetei_Mayek",
    "Mend": "Mende_Kikakui",
    "Merc": "Meroitic_Cursive",
    "Mero": "Meroitic_Hieroglyphs",
    "Plrd": "Miao",
    "Mong": "Mongolian",
    "Mroo": "Mro",
    "Mult": "Multani",
    "Mymr": "Myanmar",
    "Nbat": "Nabataean",
    "Nagm": "Nag_Mundari",
    "Nand": "Nandinagari",
    "Talu": "New_Tai_Lue",
    "Nkoo": "Nko",
    "Nshu": "Nushu",
    "Hmnp": "Nyiakeng_Puachue_Hmong",
    "Ogam": "Ogham",
    "Olck": "Ol_Chiki",
    "Onao": "Ol_Onal",
    "Hung": "Old_Hungarian",
    "Ital": "Old_Italic",
    "Narb": "Old_North_Arabian",
    "Perm": "Old_Permic",
    "Xpeo": "Old_Persian",
    "Sogo": "Old_Sogdian",
    "Sarb": "Old_South_Arabian",
    "Orkh": "Old_Turkic",
    "Ougr": "Old_Uyghur",
    "Orya": "Oriya",
    "Osge": "Osage",
    "Osma": "Osmanya",
    "Hmng": "Pahawh_Hmong",
    "Palm": "Palmyrene",
    "Pauc": "Pau_Cin_Hau",
    "Phag": "Phags_Pa",
    "Phnx": "Phoenician",
    "Phlp": "Psalter_Pahlavi",
    "Rjng": "Rejang",
    "Runr": "Runic",
    "Samr": "Samaritan",
    "Saur": "Saurashtra",
    "Shrd": "Sharada",
    "Shaw": "Shavian",
    "Sidd": "Siddham",
    "Sgnw": "SignWriting",
    "Sinh": "Sinhala",
    "Sogd": "Sogdian",
    "Sora": "Sora_Sompeng",
    "Soyo": "Soyombo",
    "Sund": "Sundanese",
    "Sunu": "Sunuwar",
    "Sylo": "Syloti_Nagri",
    "Syrc": "Syriac",
    "Tglg": "Tagalog",
    "Tagb": "Tagbanwa",
    "Tale": "Tai_Le",
    "Lana": "Tai_Tham",
    "Tavt": "Tai_Viet",
    "Takr": "Takri",
    "Taml": "Tamil",
    "Tnsa": "Tangsa",
    "Tang": "Tangut",
    "Telu": "Telugu",
    "Thaa": "Thaana",
    "Tibt": "Tibetan",
    "Tfng": "Tifinagh",
    "Tirh": "Tirhuta",
    "Todr": "Todhri",
    "Tutg": "Tulu_Tigalari",
    "Ugar": "Ugaritic",
    "Vaii": "Vai",
    "Vith": "Vithkuqi",
    "Wcho": "Wancho",
    "Wara": "Warang_Citi",
    "Yezi": "Yezidi",
    "Yiii": "Yi",
    "Zanb": "Zanabazar_Square",
    "Sidt": "Sidetic",
    "Tols": "Tolong_Siki",
    "Berf": "Beria_Erfe",
    "Tayo": "Tai_Yo",
}

PROPERTIES: dict[str, str] = {
    "Alphabetic": (
        "1t.p 6.p 1b a 4 5.m 1.u 1.cp 4.b e.4 7 1 2e t.h 1.1 2.3 1 6 1.2 1 1.j 1.2a 1.3u 8.4l 1.11 2 6.14 13.d 1 1.1 "
        "1.1 1 8.q 4.3 t.a 5.1j 1.6 e.2t 1.7 4.7 4.2 a.2 2 g.1b d.2s o.w 9.1 4 5.n 2.i j.o 7.a 5.n 1.6 7 8.15 a.b 3.6 "
        "6.23 1.f 1.2 4.e d.i 1.7 2.1 2.l 1.6 1 3.3 3.7 2.1 2.1 1 8 4.1 1.4 c.1 a 4.2 1.5 4.1 2.l 1.6 1.1 1.1 1.1 4.4 "
        "4.1 2.1 4 7.3 1 h.5 b.2 1.8 1.2 1.l 1.6 1.1 1.4 3.8 1.2 1.1 3 f.3 l.3 4.2 1.7 2.1 2.l 1.6 1.1 1.4 3.7 2.1 "
        "2.1 9.1 4.1 1.4 d g.1 1.5 3.2 1.3 3.1 1 1.1 3.1 3.2 3.b 4.4 3.2 1.2 3 6 14.c 1.2 1.m 1.f 3.7 1.2 1.2 8.1 1.2 "
        "1.1 2.3 s.3 1.7 1.2 1.m 1.9 1.4 3.7 1.2 1.2 8.1 5.2 1.3 d.2 c.c 1.2 1.14 2.7 1.2 1.2 1 5.3 7.4 m.5 1.2 1.h "
        "3.n 1.8 1 2.6 8.5 1 1.7 i.1 d.1l 5.6 6 1f.1 1 1.4 1.n 1 1.i 1.2 2.4 1 6 e.3 w 1r.7 1.z 4.i 4.f 1.z 1v.1i 1 "
        "2.4 g.1r a.3 2.11 1 5 2.16 1.98 1.3 2.6 1 1.3 2.14 1.3 2.w 1.3 2.6 1 1.3 2.e 1.1k 1.3 2.1u 11.f g.2d 2.5 "
        "3.h7 2.g 1.p 5.22 3.a 7.j b.k c.j c.c 1.2 1.1 c.1f 2.i e 4 1v.2g 7.16 5.1x a.u 1.b 4.8 n.t 2.4 b.17 4.p 1i.r "
        "4.1q 2.j 1e n.1 b.2 1d.1f 1.e 1.7 1f.15 2.3 a.17 1.a e.1i m.2 a.z 2.a 5.16 2.2 15.3 1.5 1.1 3 5.5b j.x b.7p "
        "2.5 2.11 2.5 2.7 1 1 1 1.u 2.1g 1.6 1 3.2 1.6 3.3 2.5 4.c 5.2 1.6 38 d g.c 2t 4 2.9 1 3.4 6 1 1 1.3 1.a 2.3 "
        "5.4 4 h.14 ml.1f 1ee.6c 6.3 3.1 c.11 1 5 2.1j 7 g.m 9.6 1.6 1.6 1.6 1.6 1.6 1.6 1.6 1.v 1b d1.2 p.8 7.4 2.4 "
        "4.2d 6.2 1.2h 1.3 5.16 1.2l h.v 1c.f e8.533 1s.h3g 1v.19 2.7g 3.f a.1 k.1a 5.7 3.34 13.8 2.2u 2.29 k.k 1.w "
        "o.1f c.1v 1 18.5 3 1.2 a.w 5.y d.s 3.1e 1.b f g.f a.4 1.1i 9.d i.m 3.1w 1 1 o.2 2.f 2.3 b.5 2.5 2.5 9.6 1.6 "
        "1.16 1.d 6.3e l.8mb c.m 4.1c 6is.a5 2.2x 12.6 c.4 5.b 1.c 1.4 1 1.1 1.1 1.2z x.a2 i.1r 2.1h 14.b 38.4 1.3q "
        "10.p 6.p b.2g 3.5 2.5 2.5 2.2 z.b 1.p 1.i 1.1 1.e 2.d y.3e 1x.1g 7f.s 3.1c 1b.v d.t 5.16 5.t 2.z 4.7 1.4 "
        "16.4d i.z 4.z 4.13 8.1f c.a 1.e 1.6 1.1 1.a 1.e 1.6 1.1 3.1f c.8m 9.l a.7 o.5 1.15 1.8 1x.5 2 1.17 1.1 3 2.m "
        "a.m 9.u 1t.i 1.1 a.l a.p 6.p 12.1j 6.1 1s.3 1.1 5.7 1.2 1.s 16.s 3.s z.7 1.r r.1h a.l a.i d.h 32.20 1j.1e "
        "d.1e d.13 y.r 3 5.m 6y.15 1.1 3.1 g.5 1e.2 3.s a 8.l 16.h 1a.k r.m 9.1x 17.4 a.1k 9 d.o n.1e h.3 8.y 3 9.1r "
        "1.3 9.1 a 1 z.h 1.x 2 6.3 1q.6 1 1.3 1.e 1.9 7.1k n.3 1.7 2.1 2.l 1.6 1.1 1.4 3.7 2.1 2.1 3 6 5.6 s.9 1 2 "
        "1.11 1.9 1 2 1.3 1.1 3 1 18.1t 1.2 1.3 k.2 u.1t 2.1 1 54.1h 2.6 p.5 y.1q 1 3 1n.1h 2 1z.q 2.d l.6 55.1k "
        "2v.1r v.7 2 2.7 1.1 1.t 1.1 2.1 2.3 2l.7 2.19 2.5 1 1.1 r.1e 2.9 h.1z 5 i.20 2v.7 2g.w v.8 1.18 1.6 1 1d.t "
        "2.l 1.d 21.6 1.1 1.17 3 1.1 1.2 1 2.1 o.5 1.1 1.10 1.1 1.3 1 n.17 78.m 9.g 1.14 3.2 33 27.pl 2u.32 h.5f "
        "218.2o f.tr h.5 p.32y 5.g6 5a1.1a 1ch.fs 7.u h.26 h.t i.1b g.3 v.k 5.i c0.18 5v.1r w.o 2.o 18.22 4.1k 7.g "
        "1s.1 1 c.6 9.5p1 15.v 2p.36 6pp.3 1.6 1.1 1.82 f t.2 2 e.3 8.az 1s4.2y 5.c 3.8 7.9 4 4m9.2c 1.1y 1.1 2 2.1 "
        "2.3 1.b 1 1.6 1.1s 1.3 2.7 1.6 1.r 1.3 1.4 1 3.6 1.9f 2.o 1.o 1.u 1.o 1.u 1.o 1.u 1.o 1.u 1.o 1.7 1f8.u 6.5 "
        "5x.6 1.g 2.6 1.1 1.4 5.1p x 34.18 a.6 g 8x.t i.17 dg.r 6c.t 2 5r.u 1.l 8.1 68.6 1.3 1.1 1.e 1.5g 1n.1v 3 3 "
        "xg.3 1.q 1.1 1 2 1.9 1.3 1 1 6 4 1 1 1.2 1.1 1 2 1 1 1 1 1.1 1 2.3 1.6 1.3 1.3 1 1.9 1.g 5.2 1.4 1.g hg.p "
        "6.p 6.p 2uu.wyn w.3dp 2.4gd 2.5rk f.h9 1wi.f1 15u.3t6 5.6jt"
    ),
    "Uppercase": (
        "1t.p 2t.m 1.6 x 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 1 1 1 1 1 1 1 2 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1.1 1 1 3.1 1 1.1 1.2 2.3 1.1 1.2 3.1 1.1 1 1 1.1 1 2 1.1 1.2 1 1.1 3 7 2 2 2 1 1 1 "
        "1 1 1 1 2 1 1 1 1 1 1 1 1 2 2 1.2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 7.1 1.1 2 1.3 1 "
        "1 1 1 81 1 3 8 6 1.2 1 1.1 1.g 1.8 z 2.2 3 1 1 1 1 1 1 1 1 1 1 1 5 2 1.1 2.1e 1c 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 9 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1.1 1 1 1 1 1 1 2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2.11 289.11 1 5 k2.2d 1oz 6.16 2.2 8w 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 9 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 9.7 8.5 a.7 8.7 8.5 b 1 1 1 8.7 20.3 c.3 c.3 c.4 b.3 7a 4 3.2 2.2 2 3.4 6 1 1 1.3 2.3 "
        "a.1 5 q.f j mq.p 1f4.1b 1c 1.2 2 1 1 1.3 1 2 8.2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 8 1 4 nyl 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 j 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 3r 1 1 1 1 1 1 3 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 a 1 1.1 1 1 1 1 4 1 "
        "2 1 3 1 1 1 1 1 1 1 1 1 1.4 1.4 1 1 1 1 1 1 1 1.3 1 1.1 1 1 1 1 1 1 1 1 o h7v.p xx.13 3s.z 4c.a 1.e 1.6 1.1 "
        "1d6.1e 4d.l 27u.v gw0.v 1s.o k07.p q.p q.p q 1.1 2 2.1 2.3 1.7 q.p q.1 1.3 2.7 1.6 r.1 1.3 1.4 1 3.6 r.p q.p "
        "q.p q.p q.p q.p u.o x.o x.o x.o x.o x 3ed.x 1la.p 6.p 6.p"
    ),
    "Lowercase": (
        "2p.p 1b a 4 10.n 1.7 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1.1 1 1 1 1 1 1 1 1.1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 1 1.2 2 1 2 3.1 4 2 3.2 2 2 1 1 2 1.1 1 2 3 1 2.1 2.2 6 2 2 1 1 1 1 1 1 "
        "1 1.1 1 1 1 1 1 1 1 1 1.1 2 1 3 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1.6 2 2.1 1 4 1 1 1 "
        "1.1w 2.y 7.1 u.4 2o 17 1 3 2.3 i r.y 1.1 3.2 1 1 1 1 1 1 1 1 1 1 1 1.4 1 2 2.1 1f.1b 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 9 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 1 1 1 1 1 1.1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1c.14 287.16 1.3 l4.5 1oi.8 1 39.5b 1t 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1.8 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1.8 8.5 a.7 8.7 8.5 a.7 8.7 8.d 2.7 8.7 8.7 8.4 1.1 6 3.2 1.1 8.3 2.1 8.7 a.2 "
        "1.1 3d d g.c 31 3.1 3 r 4 4 2.1 8.3 4 x.f 4 nf.p 1fq.1b 1 3.1 1 1 1 4 1.1 1.7 3 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1.1 7 1 4 c.11 1 5 nwz 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1 j 1 1 1 1 1 1 1 1 1 1 1 1 1.2 3p 1 1 1 1 1 1.2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
        "1 1 1 1 1 1 1 1 1 1 1 1 1.9 1 1 2 1 1 1 1 4 1 2 1.2 1 1 1 1 1 1 1 1 1 1 5 5 1 1 1 1 1 1 1 4 1 2 1 1 1 1 1 1 "
        "1 l.3 1 1.2 mt.16 1.d 6.27 fnk.6 c.4 tl.p y5.13 3s.z 4b.a 1.e 1.6 1.1 cj 2.2 1.15 1.8 zp.1e 3h.l 27u.v gw0.v "
        "1n.o k06.p q.6 1.h q.p q.3 1 1.6 1.a q.p q.p q.p q.p q.p q.p q.p q.p q.r s.o 1.5 q.o 1.5 q.o 1.5 q.o 1.5 q.o "
        "1.5 1 1f8.9 1.j 6.5 79.1p 1pw.x"
    ),
    "White_Space": "9.4 i 2s q 4bj 1vj.a t.1 5 1b 334",
    "Ideographic": (
        "9hi.1 p.8 e.2 qt.533 1s.g73 hkw.a5 2.2x n4a d.4 9.5p1 15.v 2p.36 70d.az f7o.wyn w.3dp 2.4gd 2.5rk f.h9 "
        "1wi.f1 15u.3t6 5.6jt"
    ),
    "ID_Start": (
        "1t.p 6.p 1b a 4 5.m 1.u 1.cp 4.b e.4 7 1 3l.4 1.1 2.3 1 6 1.2 1 1.j 1.2a 1.3u 8.4l 1.11 2 6.14 1z.q 4.3 "
        "19.16 z.1 1.2q 1 f.1 7.1 a.2 2 g 1.t t.2g b o.w 9.1 4 5.l 4 9 3 n.o 7.a 5.n 1.6 g.15 1m.1h 3 i 7.9 f.f 4.7 "
        "2.1 2.l 1.6 1 3.3 3 g d.1 1.2 e.1 a 8.5 4.1 2.l 1.6 1.1 1.1 1.1 v.3 1 j.2 g.8 1.2 1.l 1.6 1.1 1.4 3 i f.1 n "
        "b.7 2.1 2.l 1.6 1.1 1.4 3 u.1 1.2 f h 1.5 3.2 1.3 3.1 1 1.1 3.1 3.2 3.b m 1g.7 1.2 1.m 1.f 3 q.2 1.1 2.1 u "
        "4.7 1.2 1.m 1.9 1.4 3 u.2 1.1 f.1 h.8 1.2 1.14 2 g 5.2 8.2 o.5 5.h 3.n 1.8 1 2.6 1m.1b 1.1 c.6 1m.1 1 1.4 "
        "1.n 1 1.9 1.1 9 2.4 1 l.3 w 1r.7 1.z r.4 37.16 k g.5 4.3 3 3.1 7.2 4.c c h.11 1 5 2.16 1.98 1.3 2.6 1 1.3 "
        "2.14 1.3 2.w 1.3 2.6 1 1.3 2.e 1.1k 1.3 2.1u 11.f g.2d 2.5 3.h7 2.g 1.p 5.22 3.a 7.h d.i e.h e.c 1.2 f.1f z "
        "4 1v.2g 7.14 1 5.1x a.u 1d.t 2.4 b.17 4.p 1i.m 9.1g 2a 2l.1a h.7 1i.t d.1 a.17 q.z 15.2 a.z 2.a 5.16 2.2 "
        "15.3 1.5 1.1 3 5.5b 1s.7p 2.5 2.11 2.5 2.7 1 1 1 1.u 2.1g 1.6 1 3.2 1.6 3.3 2.5 4.c 5.2 1.6 38 d g.c 2t 4 "
        "2.9 1 2.5 6 1 1 1.f 2.3 5.4 4 h.14 22f.6c 6.3 3.1 c.11 1 5 2.1j 7 g.m 9.6 1.6 1.6 1.6 1.6 1.6 1.6 1.6 fa.2 "
        "p.8 7.4 2.4 4.2d 4.4 1.2h 1.3 5.16 1.2l h.v 1c.f e8.533 1s.h3g 1v.19 2.7g 3.f a.1 k.1a g.u 2.27 13.8 2.2u "
        "2.29 k.g 1.2 1.3 1.m t.1f e.1d 1q.5 3 1.1 b.r a.m p.s 7.1a s g.4 1.9 a.4 1.14 n.2 1.7 k.m 3 3.1d 1 3.1 2.4 2 "
        "1 o.2 2.a 7.2 c.5 2.5 2.5 9.6 1.6 1.16 1.d 6.36 t.8mb c.m 4.1c 6is.a5 2.2x 12.6 c.4 5 1.9 1.c 1.4 1 1.1 1.1 "
        "1.2z x.a2 i.1r 2.1h 14.b 38.4 1.3q 10.p 6.p b.2g 3.5 2.5 2.5 2.2 z.b 1.p 1.i 1.1 1.e 2.d y.3e 1x.1g 7f.s "
        "3.1c 1b.v d.t 5.11 a.t 2.z 4.7 1.4 16.4d i.z 4.z 4.13 8.1f c.a 1.e 1.6 1.1 1.a 1.e 1.6 1.1 3.1f c.8m 9.l a.7 "
        "o.5 1.15 1.8 1x.5 2 1.17 1.1 3 2.m a.m 9.u 1t.i 1.1 a.l a.p 6.p 12.1j 6.1 1s f.3 1.2 1.s 16.s 3.s z.7 1.r "
        "r.1h a.l a.i d.h 32.20 1j.1e d.1e d.z 12.r 9.m 6y.15 6.1 g.5 1k.s a 8.l 16.h 1a.k r.m c.1g 1l.1 2 d.18 w.o "
        "q.z t 2 8.y 3 c.1b e.3 l 1 z.h 1.o j.1 1r.6 1 1.3 1.e 1.9 7.1a 12.7 2.1 2.l 1.6 1.1 1.4 3 i c.4 u.9 1 2 1.11 "
        "1 p 1 18.1g i.3 k.2 u.1b k.1 1 54.1a 15.3 10.1b k 1n.16 d 1z.q 11.6 55.17 38.1r v.7 2 2.7 1.1 1.n f 1 2m.7 "
        "2.12 g 1 s a.13 7 l b.19 j i.20 5j.w v.8 1.10 h 1d.t 34.6 1.1 1.11 l p.5 1.1 1.v e n.17 78.i f 1.c 1.x 3g "
        "27.pl 2u.32 h.5f 218.2o f.tr h.5 p.32y 5.g6 5a1.t 1cy.fs 7.u h.26 h.t i.1b g.3 v.k 5.i c0.18 5v.1r w.o 2.o "
        "18.22 5 1u.c 1s.1 1 e.4 9.5p1 15.v 2p.36 6pp.3 1.6 1.1 1.82 f t.2 2 e.3 8.az 1s4.2y 5.c 3.8 7.9 4me.2c 1.1y "
        "1.1 2 2.1 2.3 1.b 1 1.6 1.1s 1.3 2.7 1.6 1.r 1.3 1.4 1 3.6 1.9f 2.o 1.o 1.u 1.o 1.u 1.o 1.u 1.o 1.u 1.o 1.7 "
        "1f8.u 6.5 79.1p 42.18 a.6 g 8x.t i.17 dg.r 6c.t 2 5r.u 1.2 1.1 1.6 2.4 9.1 68.6 1.3 1.1 1.e 1.5g 1n.1v 7 "
        "xg.3 1.q 1.1 1 2 1.9 1.3 1 1 6 4 1 1 1.2 1.1 1 2 1 1 1 1 1.1 1 2.3 1.6 1.3 1.3 1 1.9 1.g 5.2 1.4 1.g 3es.wyn "
        "w.3dp 2.4gd 2.5rk f.h9 1wi.f1 15u.3t6 5.6jt"
    ),
    "ID_Continue": (
        "1c.9 7.p 4 1.p 1b a 1 2 5.m 1.u 1.cp 4.b e.4 7 1 h.38 1.1 2.3 1 6.4 1 1.j 1.2a 1.3u 1.4 2.4l 1.11 2 6.14 "
        "8.18 1 1.1 1.1 1 8.q 4.3 t.a 5.21 4.2t 1.7 2.9 1.i 2 g.1m 2.2s e.1h 4 2 2.19 i.r 4.a 5.n 1.6 7.22 1.3k 2.9 "
        "1.i 1.7 2.1 2.l 1.6 1 3.3 2.8 2.1 2.3 8 4.1 1.4 2.b a 1 2.2 1.5 4.1 2.l 1.6 1.1 1.1 1.1 2 1.4 4.1 2.2 3 7.3 "
        "1 7.f b.2 1.8 1.2 1.l 1.6 1.1 1.4 2.9 1.2 1.2 2 f.3 2.9 9.6 1.2 1.7 2.1 2.l 1.6 1.1 1.4 2.8 2.1 2.2 7.2 4.1 "
        "1.4 2.9 1 g.1 1.5 3.2 1.3 3.1 1 1.1 3.1 3.2 3.b 4.4 3.2 1.3 2 6 e.9 g.c 1.2 1.m 1.f 2.8 1.2 1.3 7.1 1.2 1.1 "
        "2.3 2.9 g.3 1.7 1.2 1.m 1.9 1.4 2.8 1.2 1.3 7.1 5.2 1.3 2.9 1.2 c.c 1.2 1.1e 1.2 1.4 5.3 7.4 2.9 a.5 1.2 1.h "
        "3.n 1.8 1 2.6 3 4.5 1 1.7 6.9 2.1 d.1l 5.e 1.9 13.1 1 1.4 1.n 1 1.m 2.4 1 1.6 1.9 2.3 w n.1 6.9 b 1 1 4.9 "
        "1.z 4.j 1.h 1.z 9 1l.21 6.25 2.11 1 5 2.16 1.98 1.3 2.6 1 1.3 2.14 1.3 2.w 1.3 2.6 1 1.3 2.e 1.1k 1.3 2.1u "
        "2.2 9.8 e.f g.2d 2.5 3.h7 2.g 1.p 5.22 3.a 7.l 9.l b.j c.c 1.2 1.1 c.2b 3 4.1 2.9 x.2 1.a 6.2g 7.16 5.1x a.u "
        "1.b 4.b a.13 2.4 b.17 4.p 6.a 11.r 4.1q 1.s 2.a 6.9 d 8.d 1.u 2.b k.24 3.9 h.8 c.37 c.1j 8.9 3.1c 2.a 5.16 "
        "2.2 g.2 1.12 5.et 2.5 2.11 2.5 2.7 1 1 1 1.u 2.1g 1.6 1 3.2 1.6 3.3 2.5 4.c 5.2 1.6 f.1 1d.1 j s d g.c 1f.c "
        "4 3.b h 4 2.9 1 2.5 6 1 1 1.f 2.3 5.4 4 h.14 22f.6c 6.8 c.11 1 5 2.1j 7 f.n 9.6 1.6 1.6 1.6 1.6 1.6 1.6 1.6 "
        "1.v ed.2 p.e 1.4 2.4 4.2d 2.6 1.2m 5.16 1.2l h.v 1c.f e8.533 1s.h3g 1v.19 2.7g 3.r k.1b 4.9 1.36 11.8 2.2u "
        "2.29 k.1i 4 j.1f c.1x a.9 6.n 3 1.1c 2.z c.s 3.1s e.a 6.u 1.1i 9.d 2.9 6.m 3.20 o.2 2.f 2.4 a.5 2.5 2.5 9.6 "
        "1.6 1.16 1.d 6.3e 1.1 2.9 6.8mb c.m 4.1c 6is.a5 2.2x 12.6 c.4 5.b 1.c 1.4 1 1.1 1.1 1.2z x.a2 i.1r 2.1h 14.b "
        "4.f g.f 3.1 o.2 w.4 1.3q j.9 7.p 4 1.p a.2h 3.5 2.5 2.5 2.2 z.b 1.p 1.i 1.1 1.e 2.d y.3e 1x.1g 3s 3m.s 3.1c "
        "f v.v d.t 5.16 5.t 2.z 4.7 1.4 16.4d 2.9 6.z 4.z 4.13 8.1f c.a 1.e 1.6 1.1 1.a 1.e 1.6 1.1 3.1f c.8m 9.l a.7 "
        "o.5 1.15 1.8 1x.5 2 1.17 1.1 3 2.m a.m 9.u 1t.i 1.1 a.l a.p 6.p 12.1j 6.1 1s.3 1.1 5.7 1.2 1.s 2.2 4 w.s 3.s "
        "z.7 1.t p.1h a.l a.i d.h 32.20 1j.1e d.1e d.13 8.9 6.11 3.4 1.m 6y.15 1.1 3.1 g.5 1e.y a 8.w v.l 16.k r.m "
        "9.1y v.f 9.1n 7 d.o 7.9 6.1g 1.9 4.3 8.z 2 9.1w 4.3 1.c 1 z.h 1.10 6.3 1q.6 1 1.3 1.e 1.9 7.1m 5.9 6.3 1.7 "
        "2.1 2.l 1.6 1.1 1.4 1.9 2.1 2.2 2 6 5.6 2.6 3.4 b.9 1 2 1.11 1.9 1 2 1.3 1.7 d.1 t.22 5.9 4.3 u.1x 1 8.9 "
        "4m.1h 2.8 n.5 y.1s 3 b.9 12.1k 7.9 6.j s.q 2.e 4.9 6.6 55.1m 2t.21 l.7 2 2.7 1.1 1.t 1.1 2.8 c.9 1y.7 2.19 "
        "2.7 1.1 r.1q 8 8.21 3 i.20 2v.7 2g.w f.9 6.8 1.18 1.8 f.9 o.t 2.l 1.d 21.6 1.1 1.17 3 1.1 1.8 8.9 6.5 1.1 "
        "1.10 1.1 1.5 7.9 6.17 4.9 6u.m 9.g 1.14 3.4 d.a 2d 27.pl 2u.32 h.5f 218.2o f.tr g.l a.32y 5.g6 5a1.1l 1c6.fs "
        "7.u 1.9 6.26 1.9 6.t 2.4 b.1i 9.3 c.9 9.k 5.i c0.18 3.9 5i.1r w.o 2.o 18.22 4.1k 7.g 1s.1 1.1 b.6 9.5p1 15.v "
        "2p.36 6pp.3 1.6 1.1 1.82 f t.2 2 e.3 8.az 1s4.2y 5.c 3.8 7.9 3.1 381.9 ee.19 2.m f2.4 3.5 8.7 2.6 u.3 44.2 "
        "cb.2c 1.1y 1.1 2 2.1 2.3 1.b 1 1.6 1.1s 1.3 2.7 1.6 1.r 1.3 1.4 1 3.6 1.9f 2.o 1.o 1.u 1.o 1.u 1.o 1.u 1.o "
        "1.u 1.o 1.7 2.1d e8.1i 4.1d 8 e m.4 1.e uo.u 6.5 5x.6 1.g 2.6 1.1 1.4 5.1p x 34.18 3.d 2.9 4 8x.u h.1l d2.15 "
        "5y.16 5h.u 1.l 8.1 68.6 1.3 1.1 1.e 1.5g b.6 15.23 4.9 x2.3 1.q 1.1 1 2 1.9 1.3 1 1 6 4 1 1 1.2 1.1 1 2 1 1 "
        "1 1 1.1 1 2.3 1.6 1.3 1.3 1 1.9 1.g 5.2 1.4 1.g 2lw.9 sm.wyn w.3dp 2.4gd 2.5rk f.h9 1wi.f1 15u.3t6 5.6jt "
        "f62u.6n"
    ),
    "Hex_Digit": "1c.9 7.5 q.5 1eax.9 7.5 q.5",
    "Dash": "19 124 1f 2td sl 1l5.5 1p 13 f au 2dg 2 v.1 4 s ce j 33 14ls.1 11 a 4p 2u8 8u",
    "Emoji": (
        "z 6 5.9 33 4 68d c 60 m 2i.5 f.1 a7.1 c 4m p.a 4.2 5j 6f.1 a 9 1m.3 1.4 9 2 2.1 2 4 2 1.1 2 3 3.1 8.2 5 1 "
        "5.b b.1 2 1.1 1 i 2.1 i.5 1 1.1 3.1 5 2.1 4.1 b.1 5.1 2 5.1 1 1.1 k.1 5.5 1.3 2 4 2 2.5 1 2 1 1 6 3 6 a.1 f "
        "2 4 1 4.2 1 b.1 1c.2 9 e e ac.1 cv.2 j.1 1f 4 yi c gp 1 2fze 5m 4g.1 c.1 e 2.9 23.p 1.1 n k 2.8 l.1 4u.x "
        "2.33 2.1 1.2 2.2a 2.2 1.7a 1.1q b.5 1.n 7.1 2.7 c 2.3 2 4.1 d.1 2 8.1 9 5.2 c.2 8.2 2 1 4 6 3 6.2d 1c.1x 5.7 "
        "2.3 3.9 3 1.1 3 2.9 6b.b 4 7v.1a 1.9 1.54 34.c 3.a 3.1k 1 4.f 2.b 4.9"
    ),
    "Emoji_Presentation": (
        "6xm.1 5p.3 3 2 eh.1 l.1 1e.b 17 j d 8.1 h.1 5.1 8 5 l 7.1 1 4 2 7 4.1 s z 1 4.2 1 1p.2 o e nv.1 1f 4 2hf2 5m "
        "5a 2.9 23.p 1 o k 2.4 1.2 l.1 4u.w c.8 1.1x 1.l c.16 4.4 c.g 3 3.1y 1 1.56 2.1q d.3 1.n i q.1 d 2e.2c 1c.1x "
        "6 3.2 2.3 3.3 b.1 7.8 6b.b 4 7v.1a 1.9 1.54 34.c 3.a 3.1k 1 4.f 2.b 4.9"
    ),
    "Emoji_Modifier": "2qrf.4",
    "Emoji_Modifier_Base": (
        "7j1 63 g.3 2iyf 1o.2 2 2.2 39.1 2.a l.i 3 4.2 1.2 7 1 o 5l.1 4 l 4.1 4u.2 3.4 2b g.2 9 b fz 2 8.7 6 9.9 2.2 "
        "1k 1p.1 1.1 1 h.2 1.c 6d.2 16.8"
    ),
    "Emoji_Component": "z 6 5.9 6ab 5x 17or 1c5y.p e3.4 14g.3 gw30.2n",
    "Extended_Pictographic": (
        "4p 4 68d c 60 m 2i.5 f.1 a7.1 c 4m p.a 4.2 5j 6f.1 a 9 1m.3 1.4 9 2 2.1 2 4 2 1.1 2 3 3.1 8.2 5 1 5.b b.1 2 "
        "1.1 1 i 2.1 i.5 1 1.1 3.1 5 2.1 4.1 b.1 5.1 2 5.1 1 1.1 k.1 5.5 1.3 2 4 2 2.5 1 2 1 1 6 3 6 a.1 f 2 4 1 4.2 "
        "1 b.1 1c.2 9 e e ac.1 cv.2 j.1 1f 4 yi c gp 1 2fze 13.3 2s.b f.1 f e.1 11.9 34.1 c.1 e 2.9 j.1j r.e a k 2.8 "
        "1.3 9.m 6.57 2.33 2.1 1.2 2.2a 2.2 1.3 5.71 1.1q b.5 1.n 7.1 2.7 c 2.3 2 4.1 d.1 2 8.1 9 5.2 c.2 8.2 2 1 4 6 "
        "3 6.2d 1c.1x 5.7 2.g 3 1.5 2.c 62.11 c.3 1k.7 a.5 14.7 u.1 c.3 2.d 9.12 c.1a 1.9 1.54 2g.7 e.41 74.sd"
    ),
}
"""Binary property → its code points."""

PROPERTY_ALIASES: dict[str, str] = {
    "Alpha": "Alphabetic",
    "Upper": "Uppercase",
    "Lower": "Lowercase",
    "space": "White_Space",
    "Ideo": "Ideographic",
    "IDS": "ID_Start",
    "IDC": "ID_Continue",
    "Hex": "Hex_Digit",
    "EPres": "Emoji_Presentation",
    "EMod": "Emoji_Modifier",
    "EBase": "Emoji_Modifier_Base",
    "EComp": "Emoji_Component",
    "ExtPict": "Extended_Pictographic",
}
