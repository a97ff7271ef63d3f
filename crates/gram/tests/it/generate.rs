//! Random documents, deterministic for a seed.

use patter_gram::Dialect;

/// A small random number generator (splitmix64): deterministic and cheap to seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap()
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// Generates a well-formed document.
pub(crate) fn document(random: &mut Random, dialect: Dialect) -> String {
    let mut writer = Writer { random, out: String::new(), dialect };
    writer.document();
    writer.out
}

/// Damages a document: some characters or tokens are removed, duplicated or inserted.
pub(crate) fn mutate(random: &mut Random, document: &str) -> String {
    const SCRAPS: &[&str] = &[
        "(", ")", "[", "]", "{", "}", "|", ",", ":", "::", "-", "--", "-->", "->", "<--", "=>", "~", "<", ">", "@",
        "@@", "\"", "'", "`", "```", "\\", "/", "//", "/**", "*/", "\n", " ", "..", "...", ".", "0", "7", "0x", "1.5",
        "a", "true", "é", "→", "#", ";", "+", "-5", "5km", "_", "\t",
    ];
    let mut chars: Vec<char> = document.chars().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(chars.len() + 1);
        match random.below(5) {
            0 if at < chars.len() => {
                chars.remove(at);
            }
            1 => {
                let end = (at + 1 + random.below(12)).min(chars.len());
                chars.drain(at.min(end)..end);
            }
            2 if at < chars.len() => {
                let end = (at + 1 + random.below(8)).min(chars.len());
                let copy: Vec<char> = chars[at..end].to_vec();
                let to = random.below(chars.len() + 1);
                chars.splice(to..to, copy);
            }
            _ => {
                let scrap = random.pick(SCRAPS);
                chars.splice(at..at, scrap.chars());
            }
        }
    }
    chars.into_iter().collect()
}

struct Writer<'r> {
    random: &'r mut Random,
    out: String,
    dialect: Dialect,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Writes white space or a comment, usually nothing.
    fn trivia(&mut self) {
        match self.random.below(30) {
            0..=5 => self.push(" "),
            6 => self.push("\n"),
            7 => self.push("\r\n  "),
            8 => self.push("\t "),
            9 => self.push(" // note, with (brackets) and \"quotes\"\n"),
            10 => self.push("/** doc */"),
            11 => self.push("\n\n  /** two\n * lines **/\n"),
            12 => self.push("//\n"),
            _ => {}
        }
    }

    fn document(&mut self) {
        self.trivia();
        if self.random.chance(15) {
            self.record(2);
        }
        for _ in 0..self.random.below(5) {
            self.trivia();
            if self.random.chance(15) {
                self.annotations();
            }
            if self.random.chance(50) {
                self.path();
            } else {
                self.bracket(3);
            }
            self.trivia();
        }
    }

    fn annotations(&mut self) {
        if self.random.chance(30) {
            self.push("@@");
            self.trivia();
            let has_name = self.random.chance(70);
            if has_name {
                self.identifier();
                self.push(" ");
            }
            if !has_name || self.random.chance(50) {
                self.labels();
                self.push(" ");
            }
        } else {
            self.annotation();
        }
        for _ in 0..self.random.below(2) {
            self.annotation();
        }
    }

    fn annotation(&mut self) {
        self.push("@");
        self.trivia();
        self.symbol();
        self.trivia();
        self.push("(");
        self.trivia();
        self.value(2);
        self.trivia();
        self.push(")");
        self.trivia();
    }

    fn bracket(&mut self, depth: usize) {
        self.push("[");
        self.subject();
        if self.random.chance(60) {
            self.push("|");
            for index in 0..=self.random.below(4) {
                if index > 0 {
                    self.push(",");
                }
                self.trivia();
                match self.random.below(3) {
                    0 if depth > 0 => self.bracket(depth - 1),
                    1 => self.path(),
                    _ => self.identifier(),
                }
                self.trivia();
            }
        }
        self.push("]");
    }

    fn path(&mut self) {
        self.node();
        let arrows = [0, 0, 1, 1, 2, 4][self.random.below(6)];
        for _ in 0..arrows {
            self.trivia();
            let stroke = self.random.pick(&["-", "=", "~"]);
            if self.random.chance(30) {
                self.push("<");
            }
            self.push(stroke);
            if self.random.chance(40) {
                self.trivia();
                self.push("[");
                self.subject();
                self.push("]");
                self.trivia();
            }
            self.push(stroke);
            if self.random.chance(60) {
                self.push(">");
            }
            self.trivia();
            self.node();
        }
    }

    fn node(&mut self) {
        self.push("(");
        self.subject();
        self.push(")");
    }

    fn subject(&mut self) {
        self.trivia();
        if self.random.chance(60) {
            self.identifier();
            self.trivia();
        }
        if self.random.chance(40) {
            self.labels();
        }
        if self.random.chance(35) {
            self.record(2);
            self.trivia();
        }
    }

    fn labels(&mut self) {
        for _ in 0..=self.random.below(2) {
            let colon = self.random.pick(&[":", "::"]);
            self.push(colon);
            self.trivia();
            if self.random.chance(80) {
                self.symbol();
            } else {
                self.quoted('`');
            }
            self.trivia();
        }
    }

    fn identifier(&mut self) {
        match self.random.below(10) {
            0 => self.quoted('`'),
            1 => {
                let integer = self.random.pick(&["0", "42", "-7", "123456789012345678901234567890"]);
                self.push(integer);
            }
            _ => self.symbol(),
        }
    }

    fn symbol(&mut self) {
        let symbol = self.random.pick(&[
            "a",
            "b1",
            "_x",
            "sayHello",
            "hello-world",
            "me@example.com",
            "v1.2",
            "true",
            "false",
            "x..y",
            "Text",
            "A",
        ]);
        self.push(symbol);
    }

    fn record(&mut self, depth: usize) {
        self.braces(depth, true);
    }

    fn braces(&mut self, depth: usize, is_record: bool) {
        self.push("{");
        self.trivia();
        for index in 0..self.random.below(4) {
            if index > 0 {
                self.push(",");
                self.trivia();
            }
            match self.random.below(6) {
                0 => self.quoted('`'),
                1 => self.quoted('"'),
                _ => self.symbol(),
            }
            self.trivia();
            let double = self.random.chance(20) && (is_record || self.dialect == Dialect::Patter);
            self.push(if double { "::" } else { ":" });
            self.trivia();
            if is_record || self.dialect == Dialect::Patter {
                self.value(depth);
            } else if self.random.chance(20) {
                self.array(0);
            } else {
                self.scalar();
            }
            self.trivia();
        }
        self.push("}");
    }

    fn value(&mut self, depth: usize) {
        match self.random.below(10) {
            0 | 1 if depth > 0 => self.array(depth - 1),
            2 if depth > 0 => self.braces(depth - 1, false),
            _ => self.scalar(),
        }
    }

    fn array(&mut self, depth: usize) {
        let extended = self.dialect == Dialect::Patter;
        self.push("[");
        self.trivia();
        let count = self.random.below(4) + usize::from(!extended);
        for index in 0..count {
            if index > 0 {
                self.push(",");
                self.trivia();
            }
            if extended {
                self.value(depth);
            } else {
                self.scalar();
            }
            self.trivia();
        }
        self.push("]");
    }

    fn scalar(&mut self) {
        match self.random.below(12) {
            0..=2 => {
                let quote = [b'"', b'\'', b'`'][self.random.below(3)];
                self.quoted(char::from(quote));
            }
            3 => self.fence(),
            4 => {
                // Booleans cannot be tags.
                let tag = self.random.pick(&["date", "url", "x..y", "truest"]);
                self.push(tag);
                self.trivia();
                self.quoted('`');
            }
            5 | 6 => self.number(),
            7 => self.range(),
            8 => {
                let boolean = self.random.pick(&["true", "false"]);
                self.push(boolean);
            }
            _ => self.symbol(),
        }
    }

    fn number(&mut self) {
        let number = self.random.pick(&[
            "0",
            "-0",
            "7",
            "-42",
            "123456789012345678901234567890",
            "3.14",
            "-0.50",
            "0.0",
            "0xFF",
            "0xcafe",
            "042",
            "00",
            "5km",
            "-3h",
            "0x",
            "0xG",
            "1e",
            "99999999.000000001",
        ]);
        self.push(number);
    }

    fn range(&mut self) {
        match self.random.below(3) {
            0 => {
                self.number();
                self.trivia();
                self.push("..");
                self.trivia();
                self.number();
            }
            1 => {
                self.number();
                self.trivia();
                self.push("...");
            }
            _ => {
                self.push("...");
                self.trivia();
                self.number();
            }
        }
    }

    fn quoted(&mut self, quote: char) {
        self.out.push(quote);
        for _ in 0..self.random.below(4) {
            let piece = self.random.pick(&[
                "hello",
                " ",
                "World 42",
                "\\n",
                "\\t",
                "\\\\",
                "\\/",
                "https://example.com",
                "é😀",
                "(x)",
                "{",
                "]",
                "/** x */",
                ",",
                "a: b",
                "\t",
                "\r",
                "/",
            ]);
            self.push(piece);
        }
        if self.random.chance(10) {
            self.out.push('\\');
            self.out.push(quote);
        }
        self.out.push(quote);
    }

    fn fence(&mut self) {
        self.push("```");
        if self.random.chance(30) {
            let space = self.random.pick(&[" ", "", "\t"]);
            self.push(space);
            self.symbol();
        }
        let space = self.random.pick(&["", "", " ", "\r", " // note"]);
        self.push(space);
        self.push("\n");
        for _ in 0..self.random.below(4) {
            let line = self.random.pick(&[
                "    You are kind.\n",
                "\n",
                "  \n",
                "text `with` ticks ``two``\n",
                "  // not a comment\n",
                "\"quoted\n",
                "(a)-->(b)",
                "é",
                "\t- item\r\n",
            ]);
            self.push(line);
        }
        self.push("```");
    }
}
