//! Workers and Restate are killed, stopped and continued while they work.
//!
//! `PATTER_BATTERY` sets how many sessions there are; the default keeps the tests short.

use crate::database::Database;
use crate::shop::Shop;
use crate::world::Order;
use patter::session::Log;
use std::thread;
use std::time::Duration;

const WORKERS: usize = 3;

fn sessions() -> usize {
    std::env::var("PATTER_BATTERY").ok().and_then(|count| count.parse().ok()).unwrap_or(60)
}

/// What happens to the servers.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// A worker is killed, and another one started.
    Kill,
    /// All workers are killed, and others started.
    KillAll,
    /// A worker is stopped for longer than Restate waits for it, and continues then.
    Pause,
    /// A worker is asked to stop, and another one started.
    Stop,
    /// Restate is killed, and started again.
    KillRestate,
}

fn suffer(shop: &mut Shop, fault: Fault, worker: usize) {
    match fault {
        Fault::Kill => {
            shop.workers[worker].signal("-KILL");
            shop.replace_worker(worker);
        }
        Fault::KillAll => {
            shop.workers.iter().for_each(|worker| worker.signal("-KILL"));
            (0..WORKERS).for_each(|worker| shop.replace_worker(worker));
        }
        Fault::Stop => {
            shop.workers[worker].signal("-TERM");
            shop.replace_worker(worker);
        }
        Fault::Pause => {
            shop.workers[worker].signal("-STOP");
            thread::sleep(Duration::from_secs(4));
            shop.workers[worker].signal("-CONT");
        }
        Fault::KillRestate => shop.restate.restart(),
    }
}

/// What faults interrupted.
#[derive(Default)]
struct Checked {
    /// How many calls have a result that nobody knows.
    unknown: usize,
    /// How many replies and calls that may be repeated were.
    again: usize,
}

/// Checks what happened to an order: nothing that was saved is lost or repeated.
fn check(shop: &Shop, order: &str) -> Checked {
    let log = shop.wait_for(order, |log: &Log| log.open_run().is_none() && log.last_run().is_some());
    assert_eq!(log.turns().len(), 1, "{order}: the message was accepted once");
    let done = shop.world.order(order);
    let text = log.last_run().unwrap().response().content.clone();
    let known: usize = text.split(' ').next().and_then(|known| known.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(text, format!("{known} of 3 {order}"));
    // A call whose result did not arrive is not made again: the model learns that nobody knows. Only `look` may be repeated.
    for tool in ["pay", "ship"] {
        assert!(done.calls(tool) <= 1, "{order}: {tool} {done:?}");
    }
    for (tool, keys) in &done.keys {
        assert_eq!(keys.len(), 1, "{order}: each attempt of {tool} has the same key, {keys:?}");
    }
    let made = ["pay", "look", "ship"].into_iter().filter(|tool| done.calls(tool) > 0).count();
    assert!(known <= made, "{order}: a result that is known was made, {text} {done:?}");
    // A reply that was saved is not requested again: whoever takes the next step knows at least as much.
    assert!(done.results.is_sorted(), "{order}: {:?}", done.results);
    assert!(done.results.ends_with(&[3]), "{order}: {:?}", done.results);
    let again = done.results.len() - 3 + done.calls("look").saturating_sub(1);
    Checked { unknown: 3 - known, again }
}

/// When something happens: as soon as this was done with the last order.
type Moment = fn(&Order) -> bool;

const FIRST_REPLY: Moment = |order| !order.results.is_empty();
const PAYMENT: Moment = |order| order.calls("pay") > 0;
const SECOND_REPLY: Moment = |order| order.results.len() > 1;
const SHIPPING: Moment = |order| order.calls("ship") > 0;
const LAST_REPLY: Moment = |order| order.results.len() > 2;

const PLAN: [(Moment, Fault); 10] = [
    (FIRST_REPLY, Fault::KillAll),
    (|_| true, Fault::KillRestate),
    (PAYMENT, Fault::KillAll),
    (SECOND_REPLY, Fault::Pause),
    (SHIPPING, Fault::Kill),
    (LAST_REPLY, Fault::Stop),
    (PAYMENT, Fault::KillRestate),
    (SHIPPING, Fault::KillAll),
    (FIRST_REPLY, Fault::Pause),
    (SECOND_REPLY, Fault::Kill),
];

fn battery(mut shop: Shop) {
    let count = sessions();
    let mut faults = 0;
    for number in 0..count {
        let order = format!("order{number}");
        shop.send("clerk", &order);
        if number % 6 == 5 {
            let (moment, fault) = PLAN[faults % PLAN.len()];
            shop.world.wait(&order, moment);
            suffer(&mut shop, fault, faults % WORKERS);
            faults += 1;
        }
    }
    let mut total = Checked::default();
    for number in 0..count {
        let checked = check(&shop, &format!("order{number}"));
        total.unknown += checked.unknown;
        total.again += checked.again;
    }
    let Checked { unknown, again } = total;
    eprintln!(
        "{count} orders, {faults} faults: {unknown} results are unknown, {again} replies and looks were repeated"
    );
    assert!(shop.balancer.used() > WORKERS, "all workers had work, also those that replaced others");
    assert!(unknown + again > 0, "the faults interrupted nothing");
    assert!(unknown < count);
}

/// Turns and steps are spread over all workers.
const SPREAD: [&str; 2] = ["--streams-per-connection", "2"];

#[test]
fn workers_with_a_file_lose_and_repeat_nothing() {
    let Some(shop) = Shop::open(WORKERS, None, &SPREAD) else { return };
    battery(shop);
}

#[test]
fn workers_with_a_database_lose_and_repeat_nothing() {
    let Some(database) = Database::start() else { return };
    let Some(shop) = Shop::open(WORKERS, Some(database.url()), &SPREAD) else { return };
    battery(shop);
}
