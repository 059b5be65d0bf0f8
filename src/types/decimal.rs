//! Decimal numbers of any size as digits: what `java.math.BigDecimal` reads, writes and keeps.

/// The most digits that are taken: conversions between decimal and binary cost the square.
pub(super) const MAX_DIGITS: usize = 10_000;

/// A decimal number: its digits (0 to 9 each, none leading, none for zero) times 10 to the power of minus `scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) negative: bool,
    pub(super) digits: Vec<u8>,
    pub(super) scale: i32,
}

impl Decimal {
    /// Reads `[+-]digits[.digits][e[+-]digits]`.
    pub(super) fn parse(text: &str) -> Result<Decimal, String> {
        let not_a_number = || "it is not a decimal number".to_owned();
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (significand, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((significand, exponent)) => (significand, exponent.parse::<i32>().map_err(|_| not_a_number())?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = significand.split_once('.').unwrap_or((significand, ""));
        let all = whole.bytes().chain(fraction.bytes());
        if whole.len() + fraction.len() == 0 || !all.clone().all(|b| b.is_ascii_digit()) {
            return Err(not_a_number());
        }
        if whole.len() + fraction.len() > MAX_DIGITS {
            return Err(format!("it has over {MAX_DIGITS} digits"));
        }
        let digits: Vec<u8> = all.map(|b| b - b'0').skip_while(|digit| *digit == 0).collect();
        let scale = i64::try_from(fraction.len()).ok().map(|places| places - i64::from(exponent));
        let scale = scale.and_then(|scale| i32::try_from(scale).ok());
        let scale = scale.ok_or_else(|| "its exponent is beyond 32 bits".to_owned())?;
        Ok(Decimal { negative: negative && !digits.is_empty(), digits, scale })
    }

    /// The text of `BigDecimal.toString`: plain, or with an exponent where the scale is negative or the number small.
    pub(super) fn to_java_string(&self) -> String {
        let digits = self.digit_text();
        let sign = if self.negative { "-" } else { "" };
        let adjusted = digits.len() as i64 - 1 - i64::from(self.scale);
        if self.scale >= 0 && adjusted >= -6 {
            return format!("{sign}{}", with_point(&digits, digits.len() as i64 - i64::from(self.scale)));
        }
        let significand = match digits.split_at_checked(1) {
            Some((first, rest)) if !rest.is_empty() => format!("{first}.{rest}"),
            _ => digits,
        };
        if adjusted == 0 { format!("{sign}{significand}") } else { format!("{sign}{significand}E{adjusted:+}") }
    }

    /// The digits as text; zero is one digit.
    pub(super) fn digit_text(&self) -> String {
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        self.digits.iter().map(|digit| char::from(b'0' + digit)).collect()
    }

    /// The digits as a two's complement number, big-endian, as short as it can be (`BigInteger.toByteArray`).
    pub(super) fn to_twos_complement(&self) -> Vec<u8> {
        let mut limbs: Vec<u32> = Vec::new();
        for digit in &self.digits {
            let mut carry = u64::from(*digit);
            for limb in &mut limbs {
                let value = u64::from(*limb) * 10 + carry;
                *limb = value as u32;
                carry = value >> 32;
            }
            if carry > 0 {
                limbs.push(carry as u32);
            }
        }
        // A zero in front is the sign; for a negative number all bits are turned and one is added.
        let mut bytes: Vec<u8> =
            std::iter::once(0).chain(limbs.iter().rev().flat_map(|limb| limb.to_be_bytes())).collect();
        if self.negative {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
            for byte in bytes.iter_mut().rev() {
                let (sum, carry) = byte.overflowing_add(1);
                *byte = sum;
                if !carry {
                    break;
                }
            }
        }
        let sign = if self.negative { 0xFF } else { 0 };
        let spare = bytes.windows(2).take_while(
            |pair| matches!(pair, [first, second] if *first == sign && (second & 0x80 != 0) == self.negative),
        );
        let spare = spare.count();
        bytes.split_off(spare)
    }

    /// The number of [`Decimal::to_twos_complement`], of scale `scale`.
    pub(super) fn of_twos_complement(bytes: &[u8], scale: i32) -> Result<Decimal, String> {
        // 10 bits are at most 3.01 digits and a bit.
        if bytes.len() > MAX_DIGITS * 10 / 24 {
            return Err(format!("its unscaled value has {} bytes", bytes.len()));
        }
        let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
        let mut magnitude = bytes.to_vec();
        if negative {
            magnitude.iter_mut().for_each(|byte| *byte = !*byte);
            magnitude.insert(0, 0);
            for byte in magnitude.iter_mut().rev() {
                let (sum, carry) = byte.overflowing_add(1);
                *byte = sum;
                if !carry {
                    break;
                }
            }
        }
        const LIMB: u64 = 1_000_000_000;
        let mut limbs: Vec<u64> = Vec::new();
        for byte in magnitude {
            let mut carry = u64::from(byte);
            for limb in &mut limbs {
                let value = *limb * 256 + carry;
                *limb = value % LIMB;
                carry = value / LIMB;
            }
            if carry > 0 {
                limbs.push(carry);
            }
        }
        let text: String = limbs.iter().rev().map(|limb| format!("{limb:09}")).collect();
        let digits: Vec<u8> = text.bytes().map(|b| b - b'0').skip_while(|digit| *digit == 0).collect();
        Ok(Decimal { negative, digits, scale })
    }
}

/// Digits with a point before place `point`, zeros around them as needed.
pub(super) fn with_point(digits: &str, point: i64) -> String {
    let Ok(places) = usize::try_from(point) else {
        return format!("0.{}{digits}", "0".repeat(usize::try_from(-point).unwrap_or(0)));
    };
    match digits.split_at_checked(places) {
        Some(("", fraction)) => format!("0.{fraction}"),
        Some((whole, "")) => whole.to_owned(),
        Some((whole, fraction)) => format!("{whole}.{fraction}"),
        None => format!("{digits}{}", "0".repeat(places - digits.len())),
    }
}
