//! Transports with the bugs of other clients in them.

use leasehold::store::redis::{Resp, TransportError};

use crate::charges::{self, SentCharges, is_of_limits};
use crate::facts::{LANE, Sent};
use crate::planted::PlantedFault;
use crate::server::BEGINNING;
use crate::world::{Instant, World};

/// The command under a lane of its own, as if it were new.
pub fn other_lane(command: &[String]) -> Vec<String> {
    let mut command = command.to_vec();
    let place = if is_of_limits(&command) { charges::LANE } else { LANE };
    if let Some(lane) = command.get_mut(place) {
        lane.push_str("-retry");
    }
    command
}

/// What a transport with this bug answers by itself to some of the commands, which it does not send.
pub fn swallow(fault: PlantedFault, command: &[String], world: &World) -> Option<Resp> {
    let (kind, answer) = match fault {
        PlantedFault::ReleaseToSome => ("release", "released".to_owned()),
        PlantedFault::RenewalOfSome => ("renew", format!("renewed {}", BEGINNING + world.now() + 3_000_000)),
        _ => return None,
    };
    let count = Sent::read(command)?.only(kind)?;
    let now = BEGINNING + world.now();
    let answers = vec![answer; count].join("\n");
    Some(Resp::Text(format!("done {now} {now} 0\n{answers}")))
}

/// What a transport with this bug makes of a reply.
pub fn disguise(
    fault: PlantedFault,
    reply: Result<Resp, TransportError>,
    command: &[String],
    sent: Instant,
    world: &World,
) -> Result<Resp, TransportError> {
    let failed = !matches!(&reply, Ok(Resp::Text(_)));
    let noscript = matches!(&reply, Ok(Resp::Error(text)) if text.starts_with("NOSCRIPT"));
    let now = BEGINNING + world.now();
    let claims = Sent::read(command).and_then(|sent| sent.only_claim().map(<[_]>::to_vec));
    match (fault, reply, claims) {
        (PlantedFault::DeadlineFromReply, Ok(Resp::Text(answer)), _) => {
            Ok(Resp::Text(prolonged(&answer, world.now() - sent)))
        }
        (PlantedFault::ErrorAsGrant, _, Some(slots)) if failed && !noscript => {
            let slot = slots.first().copied().unwrap_or("0xa0");
            let deadline = now + 4_000_000;
            Ok(Resp::Text(format!("done {now} {now} 0\ngranted 1 {slot} {now} {deadline} u -")))
        }
        (PlantedFault::ErrorAsGrant, reply, None) if failed && !noscript => {
            match SentCharges::read(command).and_then(|sent| sent.only_takes()) {
                Some(takes) => Ok(Resp::Text(format!("done {now}{}", "\nyes 0 1 0".repeat(takes)))),
                None => reply,
            }
        }
        (PlantedFault::ErrorAsExhausted, _, Some(_)) if failed && !noscript => {
            Ok(Resp::Text(format!("done {now} 0 0\nrefused exhausted -")))
        }
        (_, reply, _) => reply,
    }
}

/// The answer, its grants ending later.
fn prolonged(answer: &str, by: u64) -> String {
    let line = |line: &str| match line.strip_prefix("granted ") {
        None => line.to_owned(),
        Some(grants) => {
            let mut words: Vec<String> = grants.split(' ').map(str::to_owned).collect();
            for deadline in words.iter_mut().skip(3).step_by(5) {
                let later = deadline.parse::<u64>().unwrap_or(0) + by;
                *deadline = later.to_string();
            }
            format!("granted {}", words.join(" "))
        }
    };
    answer.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ends_of_grants_are_put_off() {
        let answer = "done 5 6 0\ngranted 2 a 6 100 k 1 b 7 200 u -\nrenewed 9";
        let later = "done 5 6 0\ngranted 2 a 6 110 k 1 b 7 210 u -\nrenewed 9";
        assert_eq!(prolonged(answer, 10), later);
    }
}
