//! What sentinels say, and who follows it.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::*;
use crate::store::redis::native::fake::Fake;
use crate::store::redis::native::server::{Place, Server};
use crate::store::redis::native::{NativeTransport, RedisUrl};
use crate::store::redis::transport::Transport;

/// Who follows three sentinels, and two servers that may be the primary. The first is, in the fourth epoch.
struct Scene {
    sentinels: [Fake; 3],
    servers: [Fake; 2],
    follower: Arc<Server>,
}

impl Scene {
    async fn new() -> Self {
        Self::of(Duration::from_secs(1)).await
    }

    async fn of(patience: Duration) -> Self {
        let [one, two, three, four, five] = [
            Fake::start().await,
            Fake::start().await,
            Fake::start().await,
            Fake::start().await,
            Fake::start().await,
        ];
        let (sentinels, servers) = ([one, two, three], [four, five]);
        let clients = sentinels.iter().map(Fake::client).collect();
        let place = Place::Primary(Box::new(Sentinels::new(
            clients,
            "relayers",
            servers[0].client(),
            patience,
            watch::Sender::new(()),
        )));
        let scene = Scene { sentinels, servers, follower: Arc::new(Server::new(place, patience)) };
        scene.say([Some((4, 0)); 3]);
        scene
    }

    /// What each sentinel says from now on.
    fn say(&self, words: [Option<(u64, usize)>; 3]) {
        for (sentinel, word) in self.sentinels.iter().zip(words) {
            match word {
                Some((epoch, primary)) => sentinel.says(epoch, &self.servers[primary]),
                None => sentinel.is_silent(),
            }
        }
    }

    fn known(&self) -> &Sentinels {
        let Place::Primary(sentinels) = self.follower.place() else { panic!() };
        sentinels
    }

    async fn moved(&self) -> bool {
        self.known().moved(Duration::from_secs(5)).await.unwrap()
    }

    /// As if so much time had passed in which nobody asked.
    fn stand_still(&self) {
        earlier(&mut self.known().state().looked, 10 * OVERDUE);
        self.ages(10 * OVERDUE);
    }

    /// As if what the sentinels said last had been asked so much earlier.
    fn ages(&self, time: Micros) {
        for sentinel in &self.known().sentinels {
            unpoisoned(&sentinel.last).iter_mut().for_each(|last| earlier(&mut last.began, time));
        }
    }

    async fn write(&self) -> Result<Resp, TransportError> {
        self.follower.send(&packed(&["SET", "a", "1"])).await
    }

    /// How much was written to each server.
    fn written(&self) -> [usize; 2] {
        [0, 1].map(|server| self.servers[server].writes())
    }
}

fn earlier(time: &mut Micros, by: Micros) {
    *time = time.saturating_sub(by);
}

#[tokio::test]
async fn who_stood_still_asks_before_anything_is_sent() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.say([Some((5, 1)); 3]);
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [2, 0], "it asked a moment ago");
    scene.stand_still();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [2, 1]);
    // If none of them is there, none has made another the primary.
    scene.say([None; 3]);
    scene.stand_still();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [2, 2]);
}

// What nobody had answered before was taken for news of the moment at which it went on.
#[tokio::test]
async fn who_stood_still_while_it_asked_asks_again() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.say([None; 3]);
    let meanwhile = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        scene.say([Some((5, 1)); 3]);
        std::thread::sleep(Duration::from_micros(OVERDUE + OVERDUE / 4));
    };
    tokio::join!(scene.follower.look(), meanwhile);
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [1, 1]);
}

// Nobody had answered, then, and a primary of before was kept.
#[tokio::test]
async fn sentinels_that_closed_their_connections_meanwhile_are_connected_to_anew() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.say([Some((5, 1)); 3]);
    scene.sentinels.iter().for_each(Fake::hangs_up);
    scene.stand_still();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [1, 1]);
}

// Commands waited for them, who could not be sent before.
#[tokio::test]
async fn sentinels_that_are_silent_are_asked_within_the_time_after_which_it_is_overdue() {
    let scene = Scene::of(Duration::from_secs(9)).await;
    scene.write().await.unwrap();
    scene.say([None; 3]);
    let mut took = Vec::new();
    for _ in 0..3 {
        let began = boot_time();
        scene.follower.look().await;
        took.push(boot_time() - began);
    }
    let pause = LOOK.as_micros() as Micros;
    assert!(took.into_iter().min().unwrap() + pause < OVERDUE);
}

// The others agree before it would have been found to hang.
#[tokio::test]
async fn a_sentinel_that_hangs_is_connected_to_anew_after_a_while() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.say([Some((4, 0)), Some((4, 0)), None]);
    let anew = async {
        while scene.sentinels[2].connections() < 2 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            scene.moved().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), anew).await.expect("a connection");
    assert_eq!(scene.sentinels[0].connections(), 1);
}

/// What it takes to connect over TLS to one that is far, or to hear of it: longer than a look has.
const FAR: Duration = Duration::from_millis(700);

/// Writes until that is done, as a courier does.
async fn written(scene: &Scene) {
    let done = async {
        while scene.write().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), done).await.expect("a primary");
}

// Each look began to connect anew, and none was ever there.
#[tokio::test]
async fn sentinels_are_connected_to_even_if_that_takes_longer_than_a_look() {
    let scene = Scene::new().await;
    scene.sentinels.iter().for_each(|sentinel| sentinel.takes(FAR, Duration::ZERO));
    written(&scene).await;
    assert_eq!([0, 1, 2].map(|sentinel| scene.sentinels[sentinel].connections()), [1; 3]);
}

// They were taken to be away, and what was sent went to a primary of before.
#[tokio::test]
async fn nothing_is_sent_while_sentinels_that_were_there_are_connected_to() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.say([Some((5, 1)); 3]);
    scene.sentinels.iter().for_each(|sentinel| sentinel.takes(FAR, Duration::ZERO));
    scene.sentinels.iter().for_each(Fake::hangs_up);
    scene.stand_still();
    written(&scene).await;
    assert_eq!(scene.written(), [1, 1]);
}

#[tokio::test]
async fn who_cannot_be_connected_to_keeps_nobody_from_sending() {
    let scene = Scene::of(Duration::from_secs(9)).await;
    scene.write().await.unwrap();
    scene.sentinels.iter().for_each(|sentinel| sentinel.takes(Duration::from_secs(60), Duration::ZERO));
    scene.sentinels.iter().for_each(Fake::hangs_up);
    scene.stand_still();
    let began = boot_time();
    written(&scene).await;
    assert!(boot_time() - began < 2 * OVERDUE);
    // From then on they are known to be away, though each look connects to them anew.
    for _ in 0..3 {
        tokio::time::sleep(LOOK).await;
        scene.follower.look().await;
        let began = boot_time();
        scene.write().await.unwrap();
        assert!(boot_time() - began < SECOND * 2 / 5);
    }
    assert_eq!(scene.written(), [5, 0]);
}

// Whoever waited for it asked again and again, as fast as it could, until it was seen to be over.
#[tokio::test]
async fn who_waits_for_a_question_that_was_dropped_asks_no_more() {
    let scene = Scene::new().await;
    let sentinel = &scene.known().sentinels[0];
    let (_, answers) = oneshot::channel();
    let task = tokio::spawn(std::future::pending::<()>()).abort_handle();
    *unpoisoned(&sentinel.asking) = Some(Asking { began: 0, answers: answers.shared(), task });
    let began = boot_time();
    let answers = sentinel.ask(&scene.known().questions, began).await;
    assert!(matches!(answers, Err(TransportError::NotSent(_))));
}

// What it said was read by nobody, and it was taken to hang.
#[tokio::test]
async fn a_sentinel_that_answers_when_the_others_have_agreed_is_kept() {
    let scene = Scene::new().await;
    scene.sentinels[2].takes(Duration::ZERO, Duration::from_millis(30));
    scene.write().await.unwrap();
    let began = boot_time();
    while boot_time() - began < OVERDUE * 3 / 2 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        scene.moved().await;
    }
    assert_eq!(scene.sentinels[2].connections(), 1);
}

/// Whether a primary of before is left, and commands find the next, if to be answered takes so long.
async fn is_left_for_far_sentinels(answering: Duration) -> bool {
    let scene = Scene::of(Duration::from_secs(9)).await;
    let [one, two, three] = [0, 1, 2].map(|sentinel| scene.sentinels[sentinel].port);
    let url = format!("redis+sentinel://127.0.0.1:{one},127.0.0.1:{two},127.0.0.1:{three}/relayers");
    let transport = NativeTransport::new(RedisUrl::new(&url).unwrap(), Handle::current(), 10 * SECOND);
    let write = || transport.send(["SET", "a", "1"].map(str::to_owned).to_vec());
    write().await.unwrap();
    scene.sentinels.iter().for_each(|sentinel| sentinel.takes(Duration::ZERO, answering));
    // So long that no answer counts that was there at once.
    let began = boot_time();
    while boot_time() - began < OVERDUE * 3 / 2 {
        let _ = write().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    scene.say([Some((5, 1)); 3]);
    let began = boot_time();
    // A machine that is busy may take longer than the lag; without an answer that counts it would be for ever.
    while scene.written()[1] == 0 && boot_time() - began < 2 * LAG {
        let _ = write().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    scene.written()[1] > 0
}

// Each look asked anew, and no answer was there before its time was over.
#[tokio::test]
async fn sentinels_are_heard_that_take_longer_to_answer_than_a_look_has() {
    let far = [600, 900].map(Duration::from_millis);
    let left = tokio::join!(is_left_for_far_sentinels(far[0]), is_left_for_far_sentinels(far[1]));
    assert_eq!(left, (true, true));
}

#[tokio::test]
async fn what_was_said_last_counts_while_it_is_news() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.sentinels[0].says(3, &scene.servers[1]);
    let Sentinels { sentinels, questions, .. } = scene.known();
    for sentinel in sentinels {
        sentinel.ask(questions, boot_time()).await.unwrap();
    }
    let kept = |known| scene.known().kept(known, &[]).iter().map(|word| word.from).collect::<Vec<_>>();
    assert_eq!((kept(3), kept(4)), (vec![0, 1, 2], vec![1, 2]), "who knows less is behind");
    assert_eq!(scene.known().kept(4, &words(&[(4, 1), (4, 1)])).len(), 1, "two were heard");
    unpoisoned(&sentinels[1].last).as_mut().unwrap().began -= OVERDUE;
    assert_eq!(kept(4), vec![2], "it is old");
    scene.known().reached(&scene.known().servers, boot_time());
    assert_eq!(kept(4), vec![], "commands are sent elsewhere since");
}

#[tokio::test]
async fn what_was_asked_before_the_process_stood_still_is_no_news() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.sentinels.iter().for_each(|sentinel| sentinel.takes(Duration::ZERO, FAR));
    let Sentinels { sentinels, questions, .. } = scene.known();
    let asked: Vec<_> = sentinels.iter().map(|sentinel| sentinel.asking(questions, boot_time()).1).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    std::thread::sleep(Duration::from_micros(OVERDUE + OVERDUE / 4));
    for answers in asked {
        assert!(answers.await.unwrap().is_ok());
    }
    scene.say([Some((5, 1)); 3]);
    let began = boot_time();
    while boot_time() - began < OVERDUE {
        assert!(matches!(scene.write().await, Err(TransportError::NotSent(_))));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    scene.sentinels.iter().for_each(|sentinel| sentinel.takes(Duration::ZERO, Duration::ZERO));
    written(&scene).await;
    assert_eq!(scene.written(), [1, 1]);
}

// What had been said before the connection was begun was taken for news when that was made.
#[tokio::test]
async fn who_stood_still_while_it_connected_asks_again() {
    let scene = Scene::of(Duration::from_secs(9)).await;
    let shared = scene.servers[0].shared.clone();
    scene.servers[0].hangs();
    let meanwhile = async {
        shared.asked.notified().await;
        scene.say([Some((5, 1)); 3]);
        tokio::time::sleep(Duration::from_micros(OVERDUE + OVERDUE / 4)).await;
        shared.answers.add_permits(1);
    };
    let (first, ()) = tokio::join!(scene.write(), meanwhile);
    assert!(matches!(first, Err(TransportError::NotSent(_))), "{first:?}");
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [0, 1]);
}

// What the others had said before made it old, and commands waited.
#[tokio::test]
async fn who_answers_now_is_no_older_for_others_that_do_not() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    assert!(!scene.moved().await);
    scene.say([None, None, Some((4, 0))]);
    earlier(&mut scene.known().state().asked, OVERDUE * 3 / 4);
    scene.ages(OVERDUE * 3 / 4);
    let began = boot_time();
    assert!(!scene.moved().await);
    assert!(scene.known().state().looked >= began);
}

// Two failovers led back to the same server, of which a sentinel that was behind knew the first.
#[tokio::test]
async fn a_later_epoch_of_the_same_primary_is_remembered() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.say([Some((6, 0)); 3]);
    assert!(!scene.moved().await);
    scene.say([None, None, Some((5, 1))]);
    assert!(!scene.moved().await);
    scene.stand_still();
    written(&scene).await;
    assert_eq!(scene.written(), [2, 0]);
}

// It was gone back to, and granted leases that others had from the next.
#[tokio::test]
async fn a_primary_of_before_is_not_gone_back_to_for_a_sentinel_that_is_behind() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.say([Some((5, 1)); 3]);
    scene.stand_still();
    scene.write().await.unwrap();
    for behind in [[None, None, Some((4, 0))], [None, Some((0, 0)), None]] {
        scene.say(behind);
        scene.follower.close();
        assert!(matches!(scene.write().await, Err(TransportError::NotSent(cause)) if cause.contains("less")));
    }
    // Who knows it has the word, however late and however few.
    scene.say([Some((4, 0)), Some((5, 1)), Some((4, 0))]);
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [1, 2]);
}

// Else a process would wait for ever for sentinels that were set up anew.
#[tokio::test]
async fn most_sentinels_are_believed_that_know_less_than_was_known() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.say([Some((0, 1)), None, Some((0, 1))]);
    assert!(!scene.moved().await, "nobody leaves a connection for them");
    scene.follower.close();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [1, 1]);
    scene.say([Some((1, 0)); 3]);
    assert!(scene.moved().await, "they count from there on");
}

// They number the next primary anew, which was taken for one of before: commands went to the one that it replaced.
#[tokio::test]
async fn sentinels_that_forgot_all_are_followed_when_they_have_agreed_for_longer_than_the_lag() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    let agree = [Some((0, 0)), None, Some((0, 0))];
    scene.say(agree);
    scene.ages(OVERDUE);
    assert!(!scene.moved().await);
    let forgot = || scene.known().state().forgot;
    assert!(forgot().is_some());
    // What one alone says is no agreement, nor what names another.
    for other in [[Some((0, 0)), None, None], [Some((1, 1)), Some((0, 0)), Some((0, 0))]] {
        scene.say(other);
        assert!(!scene.moved().await);
        assert_eq!(forgot(), None, "{other:?}");
    }
    scene.say(agree);
    assert!(!scene.moved().await);
    earlier(scene.known().state().forgot.as_mut().unwrap(), LAG);
    scene.say([Some((1, 1)); 3]);
    assert!(!scene.moved().await, "who has just forgotten may be behind");
    scene.say(agree);
    assert!(!scene.moved().await);
    earlier(scene.known().state().forgot.as_mut().unwrap(), LAG);
    assert!(!scene.moved().await);
    scene.say([Some((1, 1)); 3]);
    assert!(scene.moved().await);
    scene.stand_still();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [1, 1]);
}

fn words(said: &[(u64, u16)]) -> Vec<Word> {
    let word = |(from, &(epoch, port)): (usize, &(u64, u16))| {
        let primary = Client::open(format!("redis://127.0.0.1:{port}")).expect("an address");
        Word { from, began: 0, epoch, primary }
    };
    said.iter().enumerate().map(word).collect()
}

#[test]
fn the_latest_word_of_most_is_followed_and_else_one_after_the_other() {
    for (said, turn, port) in [
        (&[(0, 1)][..], 7, Some(1)),
        (&[(3, 1), (4, 2), (3, 1)], 0, Some(2)),
        (&[(4, 1), (4, 2), (4, 2)], 0, Some(2)),
        // One that is behind, or may not say what it knows, is followed for one turn only.
        (&[(0, 1), (0, 2)], 0, Some(1)),
        (&[(0, 1), (0, 2)], 1, Some(2)),
        (&[(0, 1), (0, 2)], 2, Some(1)),
        (&[], 0, None),
    ] {
        let credible = most_credible(words(said), turn, said.len());
        let credible = credible.map(|word| at(&word.primary).clone());
        assert_eq!(credible, port.map(|port| ConnectionAddr::Tcp("127.0.0.1".to_owned(), port)), "{said:?}");
    }
}

#[test]
fn the_epoch_is_found_among_the_fields_of_a_primary() {
    let text = |text: &str| Resp::Text(text.to_owned());
    let fields = vec![text("name"), text("config-epoch"), text("config-epoch"), text("7")];
    assert_eq!(epoch(&Resp::List(fields)), 7);
    assert_eq!(epoch(&Resp::Error("NOPERM no".to_owned())), 0);
}
