#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fakes/certificates.h"
#include "unit/base/tls_pair.h"

namespace hmc {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;

TEST(TlsCertificates, certificatesOfOneCaAreEnoughForBothSides) {
  Certificates ca;
  TlsPair pair(contextOf(ca.issue("a")), contextOf(ca.issue("b")));
  EXPECT_TRUE(pair.shakeHands()) << pair.dialler->problem().toString();
}

TEST(TlsCertificates, aCertificateOfAnotherCaIsRefusedByEitherSide) {
  Certificates ours;
  Certificates theirs("another CA");
  TlsOptions mixed = theirs.issue("c");
  mixed.ca = ours.ca();  // believes us, and we do not believe it
  TlsPair dials(contextOf(mixed), contextOf(ours.issue("b")));
  EXPECT_THAT(dials.diallersProblem().message(), HasSubstr("unknown ca"));
  EXPECT_THAT(dials.acceptor->problem().message(), HasSubstr("certificate verify failed"));
  TlsPair accepts(contextOf(ours.issue("a")), contextOf(mixed));
  EXPECT_THAT(accepts.diallersProblem().message(), HasSubstr("certificate verify failed"));
  EXPECT_EQ(accepts.dialler->problem().code(), Code::permissionDenied);
}

TEST(TlsCertificates, anExpiredCertificateIsRefusedByEitherSide) {
  Certificates ca;
  TlsPair dials(contextOf(ca.issue("old", -60)), contextOf(ca.issue("b")));
  EXPECT_THAT(dials.diallersProblem().message(), HasSubstr("certificate expired"));
  EXPECT_THAT(dials.acceptor->problem().message(), HasSubstr("certificate has expired"));
  TlsPair accepts(contextOf(ca.issue("a")), contextOf(ca.issue("old", -60)));
  EXPECT_THAT(accepts.diallersProblem().message(), HasSubstr("certificate has expired"));
}

TEST(TlsCertificates, aSecretAndCertificatesDoNotMeet) {
  Certificates ca;
  for (const bool dials : {true, false}) {
    Context secret = contextOf(kBySecret, "hush");
    Context certificate = contextOf(ca.issue("a"));
    TlsPair pair(dials ? secret : certificate, dials ? certificate : secret);
    EXPECT_EQ(pair.diallersProblem().code(), Code::permissionDenied) << dials;
    EXPECT_FALSE(pair.acceptor->isUp() && pair.dialler->isUp());
  }
}

TEST(TlsCertificates, certificatesAreReplacedWithoutAnythingElse) {
  Certificates ca;
  const TlsOptions files = ca.issue("a");
  Context replaced = contextOf(files);
  Context other = contextOf(ca.issue("b"));
  TlsPair before(other, replaced);
  ASSERT_TRUE(before.shakeHands());
  ca.issue("a", -60);
  EXPECT_THAT(TlsPair(other, replaced).diallersProblem().message(), HasSubstr("has expired"));
  ca.issue("a");
  EXPECT_TRUE(TlsPair(other, replaced).shakeHands());
  std::filesystem::resize_file(files.key, 10);  // half written
  EXPECT_TRUE(TlsPair(other, replaced).shakeHands()) << "those that fitted stay in use";
  EXPECT_EQ(write(*before.dialler, "still there").bytes, 11u);
}

TEST(TlsCertificates, aRevokedCertificateIsRefusedByEitherSide) {
  Certificates ca;
  const TlsOptions lost = ca.issue("lost");
  TlsOptions careful = ca.issue("careful");
  careful.crl = ca.revoke({"lost"});
  TlsPair accepts(contextOf(lost), contextOf(careful));
  EXPECT_THAT(accepts.diallersProblem().message(), HasSubstr("certificate revoked"));
  EXPECT_THAT(accepts.acceptor->problem().message(), HasSubstr("certificate verify failed"));
  TlsPair dials(contextOf(careful), contextOf(lost));
  EXPECT_THAT(dials.diallersProblem().message(), HasSubstr("certificate revoked"));
  TlsPair good(contextOf(careful), contextOf(ca.issue("good")));
  EXPECT_TRUE(good.shakeHands());
}

TEST(TlsCertificates, aListOfRevokedOnesIsReadAgainWhenItChanges) {
  Certificates ca;
  TlsOptions careful = ca.issue("careful");
  const TlsOptions lost = ca.issue("lost");
  careful.crl = ca.revoke({});
  const Context context = contextOf(careful);
  EXPECT_TRUE(TlsPair(contextOf(lost), context).shakeHands());
  ca.revoke({"lost"});
  EXPECT_FALSE(TlsPair(contextOf(lost), context).diallersProblem().ok());
}

// Who asks for lists must not go on without: an attacker could keep them away.
TEST(TlsCertificates, withoutAListThatIsValidNowNobodyIsLetIn) {
  Certificates ca;
  Certificates other("another CA");
  for (const std::string& list : {ca.revoke({}, -60), other.revoke({})}) {
    TlsOptions careful = ca.issue("careful");
    careful.crl = list;
    EXPECT_FALSE(TlsPair(contextOf(ca.issue("b")), contextOf(careful)).diallersProblem().ok());
  }
}

TEST(TlsCertificates, severalCasAreTrusted) {
  Certificates ours;
  Certificates theirs("another CA");
  TlsOptions both = ours.issue("a");
  both.ca = ours.ca() + ":" + theirs.ca();
  TlsOptions other = theirs.issue("b");
  other.ca = both.ca;
  EXPECT_TRUE(TlsPair(contextOf(both), contextOf(other)).shakeHands());
}

TEST(TlsCertificates, aKeyMayBeEncryptedOrGivenAsText) {
  Certificates ca;
  TlsOptions options = ca.issue("a", 3600, "open sesame");
  const auto asked = TlsContext::create(options, "");
  EXPECT_THAT(asked.status().message(), HasSubstr("is encrypted: give its password"));
  options.keyPassword = "close sesame";
  EXPECT_THAT(TlsContext::create(options, "").status().message(), HasSubstr(options.key));
  options.keyPassword = "open sesame";
  EXPECT_TRUE(TlsPair(contextOf(options), contextOf(ca.issue("b"))).shakeHands());

  std::ifstream file(options.key);
  options.key.assign(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(TlsPair(contextOf(options), contextOf(ca.issue("b"))).shakeHands());
  options.keyPassword = "close sesame";
  const std::string sentence = TlsContext::create(options, "").status().message();
  EXPECT_THAT(sentence, HasSubstr("given as text"));
  EXPECT_THAT(sentence, testing::Not(HasSubstr("BEGIN")));
}

// Whoever names any of these believes to be encrypted.
TEST(TlsCertificates, whatIsOnlyForTlsIsRefusedWithoutIt) {
  unsetenv("HMC_TLS");
  TlsOptions list;
  list.crl = "crl.pem";
  TlsOptions password;
  password.keyPassword = "open sesame";
  for (const TlsOptions& options : {list, password}) {
    EXPECT_THAT(TlsContext::create(options, "hush").status().message(), HasSubstr("tls is off"));
  }
}

TEST(TlsCertificates, listsOfRevokedCertificatesGoWithCertificates) {
  TlsOptions options = kBySecret;
  options.crl = "crl.pem";
  EXPECT_THAT(TlsContext::create(options, "hush").status().message(), HasSubstr("\"crl.pem\""));
}

TEST(TlsCertificates, filesThatCannotBeUsedAreNamed) {
  Certificates ca;
  TlsOptions files = ca.issue("a");
  files.key = ca.issue("b").key;
  auto made = TlsContext::create(files, "");
  EXPECT_EQ(made.status().code(), Code::invalidArgument);
  EXPECT_THAT(made.status().message(), HasSubstr(files.key));
  files.ca = "/nowhere/ca.pem";
  EXPECT_THAT(TlsContext::create(files, "").status().message(), HasSubstr("/nowhere/ca.pem"));
}

}  // namespace
}  // namespace hmc
