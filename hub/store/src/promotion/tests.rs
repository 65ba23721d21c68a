//! Every statement of this module, on SQLite and, where there is one, on PostgreSQL.

use kedge_model::kinds::{EnvironmentPolicy, Promoter};
use kedge_rollout::{CheckFact, Person, RolloutId, Say};

use super::checks::ToldStatus;
use super::evidence::{EvidenceFilter, EvidenceKind};
use super::words::About;
use super::*;

async fn stores() -> (tempfile::TempDir, Vec<Store>) {
    let folder = tempfile::tempdir().unwrap();
    let lite = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
    let mut stores = vec![lite];
    stores.extend(crate::test_database::postgres().await);
    (folder, stores)
}

fn word(who: &str) -> Word {
    let (who, role, reason) = (who.to_owned(), "platform".to_owned(), "because".to_owned());
    let person = Person::new(&who, &[]);
    Word { who, person, role, at: Timestamp(5), reason, say: Say::Override { ring: None }, new_token: false }
}

#[tokio::test]
async fn what_is_written_is_read_again_on_every_database() {
    let (_folder, stores) = stores().await;
    for store in stores {
        let environments = vec![EnvironmentPolicy::new("dev", Vec::new())];
        let policy = Some(Arc::new(PromotionPolicy { promoter: Promoter::Kedge, environments }));
        let (commit, subject, author) = ("c".to_owned(), "s".to_owned(), "Ann".to_owned());
        let (reasons, words) = (vec!["looser".to_owned()], vec![word("bob")]);
        let digest = "sha256:x".to_owned();
        let row = PolicyRow { policy, digest, commit, subject, author, reasons, words, since: Timestamp(3) };
        let none = PolicyRow { policy: None, ..row.clone() };
        let changes = [(PolicySlot::Force, Some(&row)), (PolicySlot::Waiting, Some(&none)), (PolicySlot::Broken, None)];
        store.save_policies(Term(0), &changes, &[], &[], Vec::new()).await.unwrap();
        let found = store.policies().await.unwrap();
        assert_eq!((found.force, found.waiting, found.broken), (Some(row.clone()), Some(none), None));
        store.save_policies(Term(0), &[(PolicySlot::Waiting, None)], &[], &[], Vec::new()).await.unwrap();
        assert_eq!(store.policies().await.unwrap().waiting, None);
        assert_eq!(store.policy_digest().await.unwrap(), Some(row.digest));

        let about = About::Promotion { environment: "dev".to_owned(), commit: None };
        let mut tx = store.write().await.unwrap();
        let first = tx.say_on_promotion(&about, &word("bob")).await.unwrap();
        let second = tx.say_on_promotion(&About::Policy, &word("eve")).await.unwrap();
        tx.commit().await.unwrap();
        assert!(store.has_promotion_words().await.unwrap());
        let waiting = store.waiting_promotion_words().await.unwrap();
        assert_eq!((waiting.len(), &waiting[0].about, &waiting[1].about), (2, &about, &About::Policy));
        let standing = Standing { current: Some("c".to_owned()), ..Standing::default() };
        let promotion = PromotionRow { standing, in_force: Some("b".to_owned()), trouble: None };
        let evidence = NewEvidence {
            environment: "dev".to_owned(),
            commit: "c".to_owned(),
            kind: EvidenceKind::Promotion,
            rollout: Some(7),
            event: "passed",
            body: "{}".to_owned(),
        };
        let save = PromotionSave {
            rows: BTreeMap::from([("dev".to_owned(), promotion.clone()), ("old".to_owned(), PromotionRow::default())]),
            gone: vec!["old".to_owned()],
            evidence: vec![evidence.clone()],
            taken: vec![
                TakenWord { id: first, refused: None },
                TakenWord { id: second, refused: Some("no".to_owned()) },
            ],
            news: Vec::new(),
        };
        store.save_promotions(Term(0), &save).await.unwrap();
        assert!(matches!(store.save_promotions(Term(9), &save).await, Err(StoreError::Fenced(_))));
        assert_eq!(store.promotions().await.unwrap(), BTreeMap::from([("dev".to_owned(), promotion.clone())]));
        assert_eq!(store.promotion("dev").await.unwrap(), Some(promotion));
        assert_eq!(store.promotion_chain().await.unwrap().unwrap().environments.len(), 1);
        assert!(!store.has_promotion_words().await.unwrap());
        assert_eq!(store.promotion_word(second).await.unwrap().unwrap().refused.as_deref(), Some("no"));

        store.keep_evidence(Term(0), &[NewEvidence { rollout: None, ..evidence }]).await.unwrap();
        let filter = EvidenceFilter {
            environment: Some("dev".to_owned()),
            commit: Some("c".to_owned()),
            before: None,
            limit: 5,
        };
        let kept = store.evidence(&filter).await.unwrap();
        assert_eq!((kept.len(), kept[0].rollout, kept[1].rollout), (2, None, Some(7)));
        assert_eq!(store.one_evidence(kept[1].id).await.unwrap().unwrap().1, "{}");
        let before = EvidenceFilter { before: Some(kept[0].id), ..filter };
        assert_eq!(store.evidence(&before).await.unwrap().len(), 1);
        assert_eq!(
            (store.generations("dev").await.unwrap(), store.away("dev", "all", 5).await.unwrap()),
            (vec![], (0, vec![]))
        );

        let request = PromotionRequest {
            branch: "b".to_owned(),
            main_commit: "c".to_owned(),
            asked: "d".to_owned(),
            previous: None,
            base: "e".to_owned(),
            number: None,
            url: None,
            declined: true,
        };
        store.save_promotion_request(Term(0), "dev", Some(&request)).await.unwrap();
        let asked = PromotionRequest { number: Some(3), previous: Some("x".to_owned()), ..request };
        store.save_promotion_request(Term(0), "dev", Some(&asked)).await.unwrap();
        assert_eq!(store.promotion_request("dev").await.unwrap(), Some(asked));
        store.save_promotion_request(Term(0), "dev", None).await.unwrap();
        assert_eq!(store.promotion_request("dev").await.unwrap(), None);

        let fact = CheckFact { ok: true, said: "yes".to_owned(), at: Timestamp(4) };
        for _ in 0..2 {
            store.save_check(Term(0), RolloutId(7), "all", "smoke", &fact).await.unwrap();
        }
        let facts = store.check_facts(RolloutId(7)).await.unwrap();
        assert_eq!(facts, BTreeMap::from([(("all".to_owned(), "smoke".to_owned()), fact)]));
        let told = ToldStatus { state: "success".to_owned(), description: "passed".to_owned() };
        for _ in 0..2 {
            store.save_told_status(Term(0), "r", "c", "kedge/dev", &told).await.unwrap();
        }
        assert_eq!(store.told_status("r", "c", "kedge/dev").await.unwrap(), Some(told));

        assert!(store.unwitnessed_rollouts().await.unwrap().is_empty());
        assert!(store.told_rollouts().await.unwrap().is_empty() && store.active_rollouts().await.unwrap().is_empty());
        assert_eq!(store.headway(RolloutId(7), "dev").await.unwrap(), rollouts::Headway::default());
    }
}
