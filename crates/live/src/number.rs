//! Numbers as people read them.

/// An amount of memory in three figures.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return if bytes == 0 { "0".into() } else { format!("{bytes} B") };
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {}", UNITS[unit])
}

/// A number in groups of three figures.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p == 0.0 || p >= 9.95 => format!("{p:.0} %"),
        p => format!("{p:.1} %"),
    }
}

/// A time: the two largest units of it.
pub fn time(seconds: f64) -> String {
    let s = seconds as u64;
    match (s / 86_400, s / 3600 % 24, s / 60 % 60) {
        (0, 0, 0) if seconds < 10.0 => format!("{seconds:.1} s"),
        (0, 0, 0) => format!("{s} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", s % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_figures_at_most() {
        let sizes = [0, 512, 4096, 15 << 20, 1_234_567_890, 20_227_248_128, 1 << 40];
        let texts = ["0", "512 B", "4 KiB", "15 MiB", "1.15 GiB", "18.8 GiB", "1 TiB"];
        assert_eq!(sizes.map(size), texts);
        assert_eq!([0, 999, 1000, 1_251_603].map(count), ["0", "999", "1,000", "1,251,603"]);
        assert_eq!([0.0, 0.0123, 0.5, 1.0].map(percent), ["0 %", "1.2 %", "50 %", "100 %"]);
        assert_eq!(
            [0.25, 42.0, 65.0, 3700.0, 90_000.0].map(time),
            ["0.2 s", "42 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]
        );
    }
}
